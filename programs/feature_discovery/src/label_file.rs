//! The labels as a file of Node Feature Discovery's local source: one `name=value` a line.

use std::fmt::Write as _;
use std::path::Path;

use cli::Failure;
use node_report::{LabelFamily, Labels};

use crate::node_devices::NodeDevices;

/// The content of the file.
pub(crate) fn text(labels: &Labels) -> String {
    labels.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}={value}");
        text
    })
}

/// Writes the file whenever the labels change, until that fails.
pub(crate) async fn follow(devices: &mut NodeDevices, file: &Path, family: LabelFamily) -> Failure {
    let mut written: Option<Labels> = None;
    loop {
        let set = match devices.next().await {
            Ok(set) => set,
            Err(error) => return error.into(),
        };
        let labels = node_report::labels(&set, family);
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
