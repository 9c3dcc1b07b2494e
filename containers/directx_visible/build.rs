//! Links a Windows version resource into the program.

fn main() -> std::io::Result<()> {
    let description = "Runs a program that sees only the devices of its container";
    version_resource::link_to_programs(&[("directx-visible", description)])
}
