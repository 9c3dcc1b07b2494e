//! The table of `docs/labels.md`, which is generated.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

use std::fmt::Write as _;
use std::path::Path;

use node_report::LABELS;

const BEGIN: &str = "<!-- generated from core/node_report/src/labels.rs: UPDATE_REFERENCE=1 cargo test -p node_report -->\n";
const END: &str = "<!-- end -->\n";

fn table() -> String {
    let mut table = String::from("| label | example | meaning |\n|---|---|---|\n");
    for label in LABELS {
        writeln!(table, "| `{}` | `{}` | {} |", label.name, label.example, label.meaning).unwrap();
    }
    table
}

#[test]
fn the_page_lists_every_label() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/labels.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the begin mark");
    let (_, after) = rest.split_once(END).expect("the page has the end mark");
    let expected = [before, BEGIN, &table(), END, after].concat();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    assert!(page == expected, "{}: set UPDATE_REFERENCE=1 to update it", path.display());
}
