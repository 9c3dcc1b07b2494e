//! Links a Windows version resource into the program.

fn main() -> std::io::Result<()> {
    version_resource::link_to_programs(&[("gpu-probe", "GPU API test for containers")])
}
