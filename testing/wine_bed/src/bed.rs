//! Sets up and clears a whole test bed.

use std::path::Path;

use anyhow::{Context, Result};

use crate::contents::Contents;
use crate::record::Record;
use crate::{device, driver, windows_version};

/// Makes the prefix look like the host of the inventory at `path`, and removes what an
/// earlier inventory created and this one does not contain.
pub(crate) fn set(path: &Path) -> Result<()> {
    let snapshot = config::inventory::read(path)?;
    let mut record = Record::open()?;
    let wanted = Contents::of(&snapshot);
    remove_except(&mut record, &wanted)?;
    windows_version::set(&mut record, &snapshot.host).context("cannot set the host's version")?;
    // The host is recorded before anything is created, so that an interrupted run can be cleared.
    record.add(&wanted)?;
    for adapter in &snapshot.adapters {
        let failed = || format!("cannot create the driver of adapter {}", adapter.luid.0);
        driver::create(adapter).with_context(failed)?;
        if let Some(pnp) = &adapter.pnp {
            let failed = || format!("cannot create device {}", pnp.id);
            device::create(Some(adapter.luid), pnp).with_context(failed)?;
        }
    }
    for pnp in &snapshot.devices_without_adapter {
        let failed = || format!("cannot create device {}", pnp.id);
        device::create(None, pnp).with_context(failed)?;
    }
    Ok(())
}

/// Removes everything that the bed created and restores the host's own version.
pub(crate) fn clear() -> Result<()> {
    let mut record = Record::open()?;
    remove_except(&mut record, &Contents::default())?;
    windows_version::restore(&record)?;
    record.remove()
}

/// Removes what the record names and `kept` does not contain. Driver keys and folders
/// are always removed, because their content may have changed.
fn remove_except(record: &mut Record, kept: &Contents) -> Result<()> {
    let created = record.contents().clone();
    for id in created.devices.iter().filter(|id| !kept.devices.contains(id)) {
        device::remove(id).with_context(|| format!("cannot remove device {id}"))?;
    }
    for key in &created.driver_keys {
        driver::remove_key(key).with_context(|| format!("cannot remove driver key {key}"))?;
    }
    for folder in &created.folders {
        driver::remove_folder(folder).with_context(|| format!("cannot remove {folder}"))?;
    }
    let devices = created.devices.into_iter().filter(|id| kept.devices.contains(id)).collect();
    record.replace(Contents { devices, ..Contents::default() })
}
