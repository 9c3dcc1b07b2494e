//! Injects faults that an inventory cannot describe into an existing bed.

use anyhow::{Context, Result};
use windows_registry::LOCAL_MACHINE;

use crate::device;
use crate::driver::{CLASS, remove_key};

/// Removes a driver key that a device refers to.
pub(crate) fn remove_driver_key(key: &str) -> Result<()> {
    remove_key(key)
}

/// Writes a `REG_DWORD` where a text value is expected.
pub(crate) fn put_dword(key: &str, name: &str) -> Result<()> {
    let open = LOCAL_MACHINE.options().read().write().open(format!("{CLASS}\\{key}"));
    let key = open.with_context(|| format!("cannot open driver key {key}"))?;
    Ok(key.set_u32(name, 1)?)
}

/// Writes a text as a property of a device, with any type (`DEVPROP_TYPE_*`).
pub(crate) fn put_property(id: &str, name: &str, kind: &str, text: &str) -> Result<()> {
    device::put_property(id, name, kind.parse()?, text)
}
