//! Links a Windows version resource into the program.

fn main() -> std::io::Result<()> {
    let description = "DirectX device plugin for Kubernetes and its tools";
    version_resource::link_to_programs(&[("directx-programs", description)])
}
