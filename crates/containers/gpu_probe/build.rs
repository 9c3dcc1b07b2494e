//! Links a Windows version resource into the program, and sets where the pages are
//! that its hints name.

#[path = "../../programs/version_resource.rs"]
mod version_resource;

#[path = "../../programs/repository_url.rs"]
mod repository_url;

fn main() -> std::io::Result<()> {
    repository_url::set();
    version_resource::link("gpu-probe.exe", "GPU API test for containers")
}
