//! The tables of contents for users and developers, and the workflows.

#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

#[test]
fn every_page_is_in_the_table_of_contents() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let contents = root.join("docs/README.md");
    let mut listed = targets(&contents);
    listed.extend(targets(&root.join("CONTRIBUTING.md")));
    let mut pages = 0;
    for folder in ["docs", "cloud", "examples"] {
        for entry in WalkDir::new(root.join(folder)).into_iter().map(Result::unwrap) {
            let page = entry.path();
            let is_page = page.extension().is_some_and(|extension| extension == "md");
            if is_page && page != contents {
                let name = page.display();
                assert!(
                    listed.contains(page),
                    "neither docs/README.md nor CONTRIBUTING.md lists {name}"
                );
                pages += 1;
            }
        }
    }
    assert!(pages > 20, "only {pages} pages");
}

/// The files to which a page links.
fn targets(page: &Path) -> BTreeSet<PathBuf> {
    let text = std::fs::read_to_string(page).unwrap();
    let links = text.split("](").skip(1).filter_map(|link| link.split([')', '#']).next());
    let folder = page.parent().unwrap();
    links.filter_map(|link| folder.join(link).canonicalize().ok()).collect()
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
