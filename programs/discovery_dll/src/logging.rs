//! What the library tells of its work on standard error, once that is asked for.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use devices::{HostSnapshot, Selection, WarningEffect};

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Whether the library tells of its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Logging {
    On,
    Off,
}

/// Turns logging on or off for every instance.
pub(crate) fn set(logging: Logging) {
    ENABLED.store(logging == Logging::On, Ordering::Relaxed);
}

/// Writes a line. Where standard error is closed nobody wants to know.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    if ENABLED.load(Ordering::Relaxed) {
        let _ = writeln!(std::io::stderr(), "directx-device-discovery: {text}");
    }
}

/// What a discovery found and what it left out.
pub(crate) fn discovery(snapshot: &HostSnapshot, selection: &Selection) {
    line(format_args!("{} adapters, {} devices", snapshot.adapters.len(), selection.devices.len()));
    for warning in snapshot.warnings.iter().filter(|w| w.effect == WarningEffect::Incomplete) {
        line(format_args!("adapter {}: {}", warning.luid, warning.text));
    }
    for device in &selection.devices {
        line(format_args!("device {} (adapter {})", device.id, device.luid));
        for rejected in &device.runtime_files.rejected {
            let (key, value, why) = (&rejected.key, &rejected.value, &rejected.why);
            line(format_args!("{}: {key}, value `{value}` is left out: {why}", device.id));
        }
    }
    for skipped in &selection.skipped {
        line(format_args!("adapter {} is left out: {}", skipped.luid, skipped.reason));
    }
}
