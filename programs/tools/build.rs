//! Links a Windows version resource into the programs.

fn main() -> std::io::Result<()> {
    version_resource::link_to_programs(&[
        ("gen-device-mounts", "DirectX device and mount flags for containers"),
        ("query-hcs-capabilities", "Host Compute Service capabilities"),
        ("test-device-discovery", "DirectX device discovery test"),
    ])
}
