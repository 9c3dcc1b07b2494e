//! Links a Windows version resource into the program.

#[path = "../../programs/version_resource.rs"]
mod version_resource;

fn main() -> std::io::Result<()> {
    version_resource::link("gpu-probe.exe", "GPU API test for containers")
}
