//! Links a Windows version resource into the library.

fn main() -> std::io::Result<()> {
    let file = "directx-device-discovery.dll";
    version_resource::link_to_library(file, "DirectX device discovery library")
}
