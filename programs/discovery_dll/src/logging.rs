//! The log of the library on standard error, which callers can enable.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use devices::printable::printable_display;
use devices::{HostSnapshot, Selection, WarningEffect};

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Whether the library writes log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Logging {
    On,
    Off,
}

/// Enables or disables logging for all instances.
pub(crate) fn set(logging: Logging) {
    ENABLED.store(logging == Logging::On, Ordering::Relaxed);
}

/// Writes a line. Errors are ignored, because standard error may be closed.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    if ENABLED.load(Ordering::Relaxed) {
        let _ =
            writeln!(std::io::stderr(), "directx-device-discovery: {}", printable_display(text));
    }
}

/// Logs what a discovery found and what it skipped.
pub(crate) fn discovery(snapshot: &HostSnapshot, selection: &Selection) {
    line(format_args!(
        "discovered {} adapters, {} devices",
        snapshot.adapters.len(),
        selection.devices.len()
    ));
    for warning in snapshot.warnings.iter().filter(|w| w.effect == WarningEffect::Incomplete) {
        line(format_args!("adapter {}: {}", warning.luid, warning.text));
    }
    for device in &selection.devices {
        line(format_args!("device {} (adapter {})", device.id, device.luid));
        if let Some(error) = device.rejected_store() {
            line(format_args!("{}: {error}; its files are not used", device.id));
        }
        for rejected in &device.runtime_files.rejected {
            let (key, value, why) = (&rejected.key, &rejected.value, &rejected.why);
            line(format_args!("{}: skipped value `{value}` of {key}: {why}", device.id));
        }
    }
    for skipped in &selection.skipped {
        line(format_args!("skipped adapter {}: {}", skipped.luid, skipped.reason));
    }
}
