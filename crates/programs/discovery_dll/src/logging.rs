//! The log of the library on standard error, which callers can enable.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use devices::Selection;
use host::HostSnapshot;
use host::printable::printable_display;

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Enables or disables logging for all instances.
pub(crate) fn enable(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

/// Writes a line. Errors are ignored, because standard error may be closed.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    if ENABLED.load(Ordering::Relaxed) {
        let _ =
            writeln!(std::io::stderr(), "directx-device-discovery: {}", printable_display(text));
    }
}

/// Logs what a discovery found and what it left out.
pub(crate) fn discovery(snapshot: &HostSnapshot, selection: &Selection) {
    let adapters = snapshot.adapters.len();
    let devices = selection.devices.len();
    line(format_args!("discovered {adapters} adapters, {devices} devices"));
    for text in selection.left_out(snapshot) {
        line(format_args!("{text}"));
    }
}
