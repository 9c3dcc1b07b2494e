//! The tables of contents for users and developers, and links that no checker of links knows.

#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// The repository, whose name `cargo xtask release` and `cargo xtask book` replace.
const REPOSITORY: &str = "https://github.com/OWNER/REPOSITORY";

#[test]
fn every_page_is_in_the_table_of_contents() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut pages = 0;
    for (folder, list) in
        [("docs", "docs/README.md"), ("cloud", "CONTRIBUTING.md"), ("examples", "CONTRIBUTING.md")]
    {
        let listed = targets(&root.join(list));
        for page in markdown(&root.join(folder)) {
            if page != root.join(list) {
                assert!(listed.contains(&page), "{list} does not list {}", page.display());
                pages += 1;
            }
        }
    }
    assert!(pages > 20, "only {pages} pages");
}

/// The website has only what `docs` contains. Links to other files are addresses of the repository,
/// which no checker of links knows.
#[test]
fn links_of_docs_stay_in_docs_or_name_the_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let docs = root.join("docs");
    let mut addresses = 0;
    for page in markdown(&docs) {
        let place = page.strip_prefix(&root).unwrap().display();
        for link in links(&std::fs::read_to_string(&page).unwrap()) {
            if link.starts_with(REPOSITORY) {
                assert_leads_to_a_file(&link, &root);
                addresses += 1;
            } else if !link.contains("://") && !link.starts_with(['#', '<']) {
                let file = page.parent().unwrap().join(link.split('#').next().unwrap());
                let file = file.canonicalize().unwrap_or_else(|e| panic!("{place}: {link}: {e}"));
                assert!(file.starts_with(&docs), "{place} links out of `docs`: {link}");
            }
        }
    }
    assert!(addresses > 5, "only {addresses} addresses of the repository");
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
/// address.
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
        assert!(link.starts_with(REPOSITORY), "{link}");
        assert_leads_to_a_file(link, &root);
    }
}

/// Fails unless an address of the repository names a file or folder and, if it has a fragment, a
/// heading.
fn assert_leads_to_a_file(link: &str, root: &Path) {
    let path = link.strip_prefix(REPOSITORY).unwrap();
    let path = path.strip_prefix("/blob/main/").or_else(|| path.strip_prefix("/tree/main/"));
    let path = path.unwrap_or_else(|| panic!("{link} names neither a file nor a folder"));
    let (page, heading) = path.split_once('#').unwrap_or((path, ""));
    assert!(root.join(page).exists(), "{link} leads nowhere");
    if !heading.is_empty() {
        let page = std::fs::read_to_string(root.join(page)).unwrap();
        let mut headings = page.lines().filter(|line| line.starts_with('#')).map(anchor);
        assert!(headings.any(|found| found == heading), "{link}");
    }
}

/// The fragment of GitHub's address for a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let text = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    text.collect::<String>().replace(' ', "-")
}

/// The pages in a folder and its folders.
fn markdown(folder: &Path) -> Vec<PathBuf> {
    let entries = WalkDir::new(folder).into_iter().map(|entry| entry.unwrap().into_path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The links of a page, as Markdown and HTML write them.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for (begin, ends) in [("](", ")"), ("]: ", "\n"), ("src=\"", "\""), ("href=\"", "\"")] {
        let found = text.split(begin).skip(1).filter_map(|rest| rest.split(ends).next());
        links.extend(found.filter(|link| !link.contains([' ', '\n'])).map(str::to_owned));
    }
    links
}

/// The files to which a page links.
fn targets(page: &Path) -> BTreeSet<PathBuf> {
    let text = std::fs::read_to_string(page).unwrap();
    let folder = page.parent().unwrap();
    let files = links(&text).into_iter().map(|link| folder.join(link.split('#').next().unwrap()));
    files.filter_map(|file| file.canonicalize().ok()).collect()
}
