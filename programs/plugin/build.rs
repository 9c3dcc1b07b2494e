//! Links a Windows version resource into the programs.

fn main() -> std::io::Result<()> {
    version_resource::link_to_programs(&[
        ("directx-device-plugin", "DirectX device plugin for Kubernetes"),
        ("device-plugin-wddm", "DirectX device plugin for Kubernetes (WDDM devices)"),
        ("device-plugin-mcdm", "DirectX device plugin for Kubernetes (MCDM devices)"),
    ])
}
