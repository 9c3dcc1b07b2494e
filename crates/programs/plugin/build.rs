//! Links a Windows version resource into the programs.

#[path = "../version_resource.rs"]
mod version_resource;

use version_resource::link;

fn main() -> std::io::Result<()> {
    link("directx-device-plugin.exe", "DirectX device plugin for Kubernetes")?;
    link("device-plugin-wddm.exe", "DirectX device plugin for Kubernetes (WDDM devices)")?;
    link("device-plugin-mcdm.exe", "DirectX device plugin for Kubernetes (MCDM devices)")
}
