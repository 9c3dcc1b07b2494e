//! The table of contents of `docs`.

use std::path::Path;

use walkdir::WalkDir;

#[test]
fn every_page_is_in_the_table_of_contents() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let contents = std::fs::read_to_string(docs.join("README.md")).unwrap();
    for entry in WalkDir::new(&docs).min_depth(1).into_iter().map(Result::unwrap) {
        let page = entry.path().strip_prefix(&docs).unwrap().to_str().unwrap().replace('\\', "/");
        let is_page = entry.path().extension().is_some_and(|extension| extension == "md");
        let is_listed = page == "README.md" || contents.contains(&format!("]({page})"));
        assert!(is_listed || !is_page, "docs/README.md does not list {page}");
    }
}
