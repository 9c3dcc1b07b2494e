//! The table of `docs/labels.md`, which is generated.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

use std::fmt::Write as _;

use node_report::LABELS;

const BEGIN: &str = "<!-- generated from core/node_report/src/labels.rs: UPDATE_REFERENCE=1 cargo test -p node_report -->\n";

fn table() -> String {
    let mut table = String::from("| label | example | meaning |\n|---|---|---|\n");
    for label in LABELS {
        writeln!(table, "| `{}` | `{}` | {} |", label.name, label.example, label.meaning).unwrap();
    }
    table
}

#[test]
fn the_page_lists_every_label() {
    doc_pages::assert_part("labels.md", BEGIN, &table());
}
