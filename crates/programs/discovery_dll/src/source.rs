//! The source of the adapters: this Windows host or, on other systems, an inventory.

use host::{AdapterSource, SourceError};

pub(crate) type Open = fn() -> Result<Box<dyn AdapterSource>, SourceError>;

/// Opens this Windows host.
#[cfg(windows)]
pub(crate) fn open() -> Result<Box<dyn AdapterSource>, SourceError> {
    Ok(Box::new(win32::HostSource::new()?))
}

/// The environment variable with the path of an inventory. Windows ignores it.
#[cfg(not(windows))]
const INVENTORY: &str = "DIRECTX_DISCOVERY_INVENTORY";

/// Opens the inventory that the environment variable names.
#[cfg(not(windows))]
pub(crate) fn open() -> Result<Box<dyn AdapterSource>, SourceError> {
    match std::env::var_os(INVENTORY) {
        Some(file) => Ok(Box::new(command_line::InventorySource::new(file))),
        None => Err(format!(
            "DirectX devices are available only on Windows; on this system set {INVENTORY} to an \
             inventory file"
        )
        .into()),
    }
}
