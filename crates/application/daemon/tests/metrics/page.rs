//! The table of `docs/reference/metrics.md`, which is generated.

use std::fmt::Write as _;

use daemon::metrics::{DEVICE_LABELS, METRICS};
use process::metrics::Metric;

const BEGIN: &str = "<!-- generated from crates/application/daemon/src/metrics/catalog.rs by cargo xtask update -->\n";

fn table() -> String {
    let mut table = String::from("| metric | meaning | labels |\n|---|---|---|\n");
    for metric in METRICS {
        let device = metric.labels.starts_with(&["gpu"]);
        let has_container = metric.labels.contains(&"namespace");
        let own: Vec<String> = metric
            .labels
            .iter()
            .filter(|label| !device || !is_device_label(label))
            .map(|label| format!("`{label}`"))
            .collect();
        let common = match (device, has_container) {
            (true, true) => "device labels",
            (true, false) => "device labels without the container",
            (false, _) => "",
        };
        let own = own.join(", ");
        let and = if common.is_empty() || own.is_empty() { "" } else { "; " };
        let Metric { name, help, .. } = metric;
        writeln!(table, "| `{name}` | {help} | {common}{and}{own} |").unwrap();
    }
    table
}

fn is_device_label(label: &str) -> bool {
    DEVICE_LABELS.contains(&label)
}

#[test]
fn the_page_lists_every_metric() {
    doc_pages::assert_part("reference/metrics.md", BEGIN, &table());
}
