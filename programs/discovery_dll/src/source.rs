//! Where the library's adapters come from.

use devices::{AdapterSource, SourceError};

/// Opens the host.
pub(crate) type Open = fn() -> Result<Box<dyn AdapterSource>, SourceError>;

/// This Windows host.
#[cfg(windows)]
pub(crate) fn open() -> Result<Box<dyn AdapterSource>, SourceError> {
    Ok(Box::new(win32::HostSource::new()?))
}

/// Names a recorded host, off Windows.
#[cfg(not(windows))]
const INVENTORY: &str = "DIRECTX_DISCOVERY_INVENTORY";

/// The recorded host that the environment names.
#[cfg(not(windows))]
pub(crate) fn open() -> Result<Box<dyn AdapterSource>, SourceError> {
    match std::env::var_os(INVENTORY) {
        Some(file) => Ok(Box::new(inventory::RecordedSource::new(file))),
        None => Err(format!(
            "only Windows has DirectX devices to list, and {INVENTORY} names no recorded host"
        )
        .into()),
    }
}
