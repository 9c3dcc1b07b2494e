//! Links a Windows version resource into the program.

#[path = "../version_resource.rs"]
mod version_resource;

fn main() -> std::io::Result<()> {
    version_resource::link("directx-feature-discovery.exe", "Node labels for DirectX devices")
}
