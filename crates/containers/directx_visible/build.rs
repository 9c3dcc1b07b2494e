//! Links a Windows version resource into the program.

#[path = "../../programs/version_resource.rs"]
mod version_resource;

fn main() -> std::io::Result<()> {
    let description = "Runs a program that sees only the devices of its container";
    version_resource::link("directx-visible.exe", description)
}
