//! Links a Windows version resource into the program.

fn main() -> std::io::Result<()> {
    let program = ("directx-feature-discovery", "Node labels for DirectX devices");
    version_resource::link_to_programs(&[program])
}
