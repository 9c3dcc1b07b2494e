//! Links a Windows version resource into the library.

use version_resource::{CompileError, link_to_library};

fn main() -> Result<(), CompileError> {
    link_to_library("directx-device-discovery.dll", "DirectX device discovery library")
}
