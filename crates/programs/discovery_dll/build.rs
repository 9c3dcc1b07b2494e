//! Links a Windows version resource into the library.

#[path = "../version_resource.rs"]
mod version_resource;

fn main() -> std::io::Result<()> {
    let file = "directx-device-discovery.dll";
    version_resource::link(file, "DirectX device discovery library")
}
