//! The tables of contents for users and developers, and the workflows.

use std::path::Path;

use walkdir::WalkDir;

#[test]
fn every_page_is_in_the_table_of_contents() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let contents = std::fs::read_to_string(docs.join("README.md")).unwrap();
    let for_developers = std::fs::read_to_string(docs.join("../CONTRIBUTING.md")).unwrap();
    for entry in WalkDir::new(&docs).min_depth(1).into_iter().map(Result::unwrap) {
        let page = entry.path().strip_prefix(&docs).unwrap().to_str().unwrap().replace('\\', "/");
        let is_page = entry.path().extension().is_some_and(|extension| extension == "md");
        let is_listed = page == "README.md"
            || contents.contains(&format!("]({page})"))
            || for_developers.contains(&format!("](docs/{page})"));
        assert!(is_listed || !is_page, "neither docs/README.md nor CONTRIBUTING.md lists {page}");
    }
}

#[test]
fn workflows_pin_what_they_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/workflows");
    let mut pins = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().map(|line| line.trim().trim_start_matches("- ")) {
            let Some((key @ ("uses" | "image"), value)) = line.split_once(": ") else { continue };
            // A workflow of this repository has the commit of the one that calls it.
            if value.starts_with("./.github/workflows/") {
                continue;
            }
            let (_, pin) = value.split_once('@').unwrap_or_default();
            let pin = pin.split_whitespace().next().unwrap_or_default();
            let digits = if key == "uses" { pin } else { pin.trim_start_matches("sha256:") };
            let length = if key == "uses" { 40 } else { 64 };
            let is_pinned = digits.len() == length && digits.chars().all(|c| c.is_ascii_hexdigit());
            assert!(is_pinned, "{}: {line}", path.display());
            pins += 1;
        }
    }
    assert!(pins > 10, "only {pins} pins");
}
