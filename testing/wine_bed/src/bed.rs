//! Setting and clearing, as a whole.

use std::path::Path;

use anyhow::{Context, Result};
use devices::HostSnapshot;

use crate::ledger::Ledger;
use crate::{device, driver, host};

/// Makes the prefix look like the host of the inventory at `path`; what an earlier
/// inventory had and this one has not is taken away.
pub(crate) fn set(path: &Path) -> Result<()> {
    let snapshot = inventory::read(path)?;
    let mut ledger = Ledger::open()?;
    let wanted = wanted(&snapshot);
    take_away(&mut ledger, &wanted)?;
    host::set(&mut ledger, &snapshot.host).context("cannot set the host's version")?;
    // Written before anything is made: a run that ends in the middle leaves nothing unknown.
    ledger.add(&wanted)?;
    for adapter in &snapshot.adapters {
        let failed = || format!("cannot make the driver of adapter {}", adapter.luid.0);
        driver::make(adapter).with_context(failed)?;
        if let Some(pnp) = &adapter.pnp {
            let failed = || format!("cannot make device {}", pnp.id);
            device::make(adapter.luid, pnp).with_context(failed)?;
        }
    }
    Ok(())
}

/// Takes everything away and gives the host its own version back.
pub(crate) fn clear() -> Result<()> {
    let mut ledger = Ledger::open()?;
    take_away(&mut ledger, &Made::default())?;
    host::restore(&ledger)?;
    ledger.remove()
}

/// What a bed consists of, by name.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Made {
    /// Device instance ids.
    pub(crate) devices: Vec<String>,
    /// Driver keys, `{class}\NNNN`.
    pub(crate) driver_keys: Vec<String>,
    /// Driver store folders.
    pub(crate) folders: Vec<String>,
}

fn wanted(snapshot: &HostSnapshot) -> Made {
    let pnp = || snapshot.adapters.iter().filter_map(|adapter| adapter.pnp.as_ref());
    let stores = snapshot.adapters.iter().filter_map(|adapter| adapter.driver_store.as_ref());
    Made {
        devices: pnp().map(|device| device.id.to_string()).collect(),
        driver_keys: pnp().filter_map(|d| Some(d.driver_key.as_ref()?.to_string())).collect(),
        folders: stores.map(|store| store.path.clone()).collect(),
    }
}

/// Removes what the ledger names and `kept` does not. Driver keys and folders are
/// removed even if they are kept, as what is in them may have changed.
fn take_away(ledger: &mut Ledger, kept: &Made) -> Result<()> {
    let made = ledger.made().clone();
    for id in made.devices.iter().filter(|id| !kept.devices.contains(id)) {
        device::remove(id).with_context(|| format!("cannot remove device {id}"))?;
    }
    for key in &made.driver_keys {
        driver::remove_key(key).with_context(|| format!("cannot remove driver key {key}"))?;
    }
    for folder in &made.folders {
        driver::remove_folder(folder).with_context(|| format!("cannot remove {folder}"))?;
    }
    let devices = made.devices.into_iter().filter(|id| kept.devices.contains(id)).collect();
    ledger.replace(Made { devices, ..Made::default() })
}
