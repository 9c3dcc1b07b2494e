//! What a program tells beside its result, on standard error.

use std::fmt;
use std::io::Write as _;

use devices::{HostSnapshot, Kept, RejectedValue, Selection};

/// Tells something that somebody may have to act on.
pub(crate) fn warn(text: impl fmt::Display) {
    line(&format!("warning: {text}"));
}

/// Tells `text` as it is. Where standard error is closed nobody wants to know.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What discovery left out, line by line, for `--verbose`.
pub(crate) fn of_discovery(snapshot: &HostSnapshot, selection: &Selection) -> Vec<String> {
    let partial = snapshot.warnings.iter().filter(|w| w.kept == Kept::InPart);
    let mut notes: Vec<String> =
        partial.map(|w| format!("adapter {}: {}", w.luid, w.text)).collect();
    for device in &selection.devices {
        for RejectedValue { key, value, why } in &device.runtime_files.rejected {
            notes.push(format!("{}: {key}, value `{value}` is left out: {why}", device.id));
        }
    }
    notes.extend(selection.skipped.iter().map(|skipped| {
        let name = Some(&skipped.description).filter(|text| !text.is_empty());
        let name = name.map(|text| format!(" ({text})")).unwrap_or_default();
        format!("adapter {}{name} is left out: {}", skipped.luid, skipped.reason)
    }));
    notes
}
