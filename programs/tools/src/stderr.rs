//! Warnings and details on standard error.

use std::fmt;
use std::io::Write as _;

use devices::printable::printable_line;
use devices::{HostSnapshot, RejectedValue, Selection, WarningEffect};

/// Prints a warning.
pub(crate) fn warn(text: impl fmt::Display) {
    line(&format!("warning: {text}"));
}

/// Prints a line. Errors are ignored: if standard error is closed, nobody reads it.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable_line(text));
}

/// What discovery skipped, line by line, for `--verbose`.
pub(crate) fn discovery_details(snapshot: &HostSnapshot, selection: &Selection) -> Vec<String> {
    let partial = snapshot.warnings.iter().filter(|w| w.effect == WarningEffect::Incomplete);
    let mut lines: Vec<String> =
        partial.map(|w| format!("adapter {}: {}", w.luid, w.text)).collect();
    for device in &selection.devices {
        if let Some(error) = device.rejected_store() {
            lines.push(format!("device {}: {error}; its files are not used", device.id));
        }
        for RejectedValue { key, value, why } in &device.runtime_files.rejected {
            lines.push(format!("device {}: skipping value `{value}` of {key}: {why}", device.id));
        }
    }
    lines.extend(selection.skipped.iter().map(|skipped| {
        let name = Some(&skipped.description).filter(|text| !text.is_empty());
        let name = name.map(|text| format!(" ({text})")).unwrap_or_default();
        format!("skipping adapter {}{name}: {}", skipped.luid, skipped.reason)
    }));
    lines
}
