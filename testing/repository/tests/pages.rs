//! The tables of contents for users and developers, and the links of the chart.

#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// The repository in the files of the chart, which `cargo xtask release` replaces.
const PAGES_OF_THE_REPOSITORY: &str = "https://github.com/OWNER/REPOSITORY/blob/main/";

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

/// The last column of the table of claims. Tests are functions of Rust and Go.
#[test]
fn each_claim_of_the_evidence_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let page = std::fs::read_to_string(root.join("docs/maintainers/evidence.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| claim |")).skip(2);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 15, "only {} rows", rows.len());
    let is_code = |entry: &walkdir::DirEntry| {
        entry.file_name() != "target" && !entry.file_name().to_string_lossy().starts_with('.')
    };
    let mut code = String::new();
    for entry in WalkDir::new(&root).into_iter().filter_entry(is_code).map(Result::unwrap) {
        if entry.path().extension().is_some_and(|extension| extension == "rs" || extension == "go")
        {
            code += &std::fs::read_to_string(entry.path()).unwrap();
        }
    }
    for row in rows {
        let tests = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            let is_test =
                ["fn ", "func "].iter().any(|begin| code.contains(&format!("{begin}{name}(")));
            assert!(is_test, "no test is called {name}");
        }
    }
}

/// The chart's README is also shown without the repository, so its links contain the repository's
/// address, which no checker of links knows.
#[test]
fn links_of_the_chart_lead_to_pages_and_headings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = root.join("deploy/charts/directx-device-plugin/README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    assert!(!readme.contains("](../") && !readme.contains("](docs"), "a link is relative");
    let links = readme.lines().filter_map(|line| line.split_once("]: "));
    let links: Vec<_> = links.map(|(_, link)| link).collect();
    assert!(links.len() > 5, "only {} links", links.len());
    for link in links {
        let link = link.strip_prefix(PAGES_OF_THE_REPOSITORY).unwrap_or_else(|| panic!("{link}"));
        let (page, heading) = link.split_once('#').unwrap_or((link, ""));
        let page = std::fs::read_to_string(root.join(page))
            .unwrap_or_else(|error| panic!("{link}: {error}"));
        let mut headings = page.lines().filter(|line| line.starts_with('#')).map(anchor);
        assert!(heading.is_empty() || headings.any(|found| found == heading), "{link}");
    }
}

/// The fragment of GitHub's address for a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let text = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    text.collect::<String>().replace(' ', "-")
}

/// The files to which a page links.
fn targets(page: &Path) -> BTreeSet<PathBuf> {
    let text = std::fs::read_to_string(page).unwrap();
    let links = text.split("](").skip(1).filter_map(|link| link.split([')', '#']).next());
    let folder = page.parent().unwrap();
    links.filter_map(|link| folder.join(link).canonicalize().ok()).collect()
}
