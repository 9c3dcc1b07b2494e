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

/// The number in a constant of a source file, such as `const CALLS: u32 = 8;`.
fn number(source: &str, constant: &str) -> u64 {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(source)).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("const "));
    let line = lines.find(|line| line.starts_with(&format!("{constant}: ")));
    let (_, value) =
        line.unwrap_or_else(|| panic!("{source}: {constant}")).split_once(" = ").unwrap();
    let value = value.trim_start_matches("Duration::from_secs(").trim_end_matches([')', ';']);
    value.split(" * ").map(|factor| factor.parse::<u64>().unwrap()).product()
}

#[test]
fn the_limits_of_sockets_are_documented() {
    const SERVER: &str = "crates/kubernetes/device_plugin/src/server.rs";
    const SERVICE: &str = "crates/kubernetes/device_plugin/src/service.rs";
    const MONITORING: &str = "crates/application/daemon/src/monitoring/server.rs";
    let of_server = |constant| number(SERVER, constant);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let page = std::fs::read_to_string(page).unwrap();
    for expected in [
        format!("| connections | {}; further ones wait |", of_server("CONNECTIONS")),
        format!(
            "| calls at once on a connection | {}, with headers of {} KiB |",
            of_server("CALLS"),
            of_server("HEADER_BYTES") / 1024
        ),
        format!(
            "| one request or response | 4 MiB, and {} containers |",
            number(SERVICE, "CONTAINERS")
        ),
        format!("| one call | {} s |", of_server("CALL_LIMIT")),
        format!(
            "| time without an answer to a ping of HTTP/2 | {} s, then",
            of_server("KEEP_ALIVE") + of_server("KEEP_ALIVE_ANSWER")
        ),
        // A message is at most as long as tonic permits by default.
        format!(
            "incomplete requests keep at most {} MiB",
            of_server("CONNECTIONS") * of_server("CALLS") * 4
        ),
        format!("up to {} connections of ", number(MONITORING, "CONNECTIONS")),
    ] {
        assert!(page.contains(&expected), "docs/security.md lacks `{expected}`");
    }
}
