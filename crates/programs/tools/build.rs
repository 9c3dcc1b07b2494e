//! Links a Windows version resource into the programs.

#[path = "../version_resource.rs"]
mod version_resource;

use version_resource::link;

fn main() -> std::io::Result<()> {
    link("gen-device-mounts.exe", "DirectX device and mount flags for containers")?;
    link("query-hcs-capabilities.exe", "Host Compute Service capabilities")?;
    link("test-device-discovery.exe", "DirectX device discovery test")
}
