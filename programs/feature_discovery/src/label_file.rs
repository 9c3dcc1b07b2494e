//! The labels as a file of Node Feature Discovery's local source: one `name=value` a line.

use std::fmt::Write as _;
use std::path::Path;

use cli::Failure;
use node_report::{LabelFamily, Labels};

use plugin::KnownSets;

/// The content of the file.
pub(crate) fn text(labels: &Labels) -> String {
    labels.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}={value}");
        text
    })
}

/// Writes the file whenever the labels change, until that fails.
pub(crate) async fn follow(devices: &mut KnownSets, file: &Path, family: LabelFamily) -> Failure {
    let mut written: Option<Labels> = None;
    loop {
        let labels = node_report::labels(&*devices.next().await, family);
        if written.as_ref() == Some(&labels) {
            continue;
        }
        if let Err(failure) = cli::write_file(file, &text(&labels)) {
            return failure;
        }
        tracing::info!(file = %file.display(), labels = labels.len(), "labels written");
        written = Some(labels);
    }
}
