//! Sets where the pages are that the findings name.

#[path = "../../programs/repository_url.rs"]
mod repository_url;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    repository_url::set();
}
