//! Assembles a snapshot of the host from the data that Windows returns.
//!
//! [`Host`] provides the data. This module joins and orders it, uses fallbacks and skips
//! what cannot be read. It runs on any operating system, with a simulated host in the tests.

use std::collections::{BTreeMap, BTreeSet};

use devices::{
    Adapter, AdapterWarning, Attributes, CopyToVmKey, CopyToVmValue, DriverKey, DriverStore,
    HostFacts, HostSnapshot, Luid, PnpDevice, ReadStep, SourceError, StoreFiles, WarningEffect,
    error_chain,
};

use crate::copy_to_vm::{self, RawValue};
use crate::error::WindowsError;
use crate::kernel_report::AdapterFacts;
use crate::store_path;

/// The data that the assembly needs from Windows. Each result is valid only at the time of
/// the call: an adapter can disappear between two calls.
pub(crate) trait Host {
    /// The adapters that Windows lists, in its order, with their attributes.
    fn adapters(&self) -> Vec<(Luid, Attributes)>;
    /// The properties of an adapter.
    fn adapter(&self, luid: Luid) -> Result<AdapterFacts, WindowsError>;
    /// The present devices that belong to an adapter.
    fn devices(&self) -> Result<Vec<Candidate>, WindowsError>;
    /// The driver store folder that the graphics kernel reports.
    fn store_of_adapter(&self, luid: Luid) -> Result<String, WindowsError>;
    /// The path in the driver store of an installed INF (`oem12.inf`).
    fn store_of_inf(&self, inf: &str) -> Result<String, WindowsError>;
    /// The value `UserModeDriverName` of a driver key.
    fn user_mode_drivers(&self, key: &DriverKey) -> Result<Vec<String>, WindowsError>;
    /// The `CopyToVm*` keys in a driver key and in its direct subkeys.
    fn copy_to_vm(&self, key: &DriverKey) -> Result<CopyToVmKeys, WindowsError>;
    /// Whether a folder exists. A folder that cannot be examined counts as existing.
    fn has_folder(&self, path: &str) -> bool;
    /// The Windows folder, `C:\Windows`.
    fn system_root(&self) -> &str;
    /// Called before each call that may not return, so that it can be named.
    fn begin(&self, step: ReadStep);
}

/// The `CopyToVm*` keys of a driver.
#[derive(Debug, Default)]
pub(crate) struct CopyToVmKeys {
    /// Each key with its unparsed values.
    pub(crate) read: Vec<(CopyToVmKey, Vec<RawValue>)>,
    /// The errors of the existing keys that cannot be read.
    pub(crate) unreadable: Vec<WindowsError>,
}

/// A present device that belongs to an adapter.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The adapter's LUID.
    pub(crate) luid: Luid,
    /// The index of the device in a linked adapter; 0 if it is the only device.
    pub(crate) physical_index: u32,
    /// The device, or the reason why its properties cannot be read.
    pub(crate) device: Result<Device, WindowsError>,
}

/// A device, and the INF that leads to its driver's folder.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) pnp: PnpDevice,
    /// `DEVPKEY_Device_DriverInfPath`: the name of the installed INF.
    pub(crate) inf: Option<String>,
}

/// Reads every adapter of `host`. If an adapter or a part of it cannot be read, it is skipped
/// with a warning.
pub(crate) fn read(host: &impl Host, facts: HostFacts) -> Result<HostSnapshot, SourceError> {
    host.begin(ReadStep::Devices);
    let mut devices = first_devices(host.devices()?);
    let inside_container = facts.inside_container;
    let mut snapshot = HostSnapshot { host: facts, ..HostSnapshot::default() };
    for listed in host.adapters() {
        let (luid, mut notes) = (listed.0, Vec::new());
        match adapter(host, inside_container, listed, devices.remove(&luid), &mut notes) {
            Ok(adapter) => snapshot.adapters.push(adapter),
            Err(failure) => {
                let text = error_chain(&failure);
                snapshot.warnings.push(AdapterWarning {
                    luid,
                    text,
                    effect: WarningEffect::Skipped,
                });
                continue;
            }
        }
        let warning = |text| AdapterWarning { luid, text, effect: WarningEffect::Incomplete };
        snapshot.warnings.extend(notes.into_iter().map(warning));
    }
    Ok(snapshot)
}

/// One device for each LUID. For a linked adapter, this is the first physical device.
fn first_devices(candidates: Vec<Candidate>) -> BTreeMap<Luid, Candidate> {
    let mut devices: BTreeMap<Luid, Candidate> = BTreeMap::new();
    for candidate in candidates {
        let existing = devices.get(&candidate.luid);
        if existing.is_none_or(|other| candidate.physical_index < other.physical_index) {
            devices.insert(candidate.luid, candidate);
        }
    }
    devices
}

fn adapter(
    host: &impl Host,
    inside_container: bool,
    (luid, attributes): (Luid, Attributes),
    candidate: Option<Candidate>,
    notes: &mut Vec<String>,
) -> Result<Adapter, WindowsError> {
    host.begin(ReadStep::Adapter(luid));
    let facts = host.adapter(luid)?;
    let device = candidate.map(|candidate| candidate.device).transpose()?;
    let driver_store = driver_store(host, inside_container, luid, device.as_ref(), notes)?;
    Ok(facts.adapter(luid, attributes, device.map(|device| device.pnp), driver_store))
}

fn driver_store(
    host: &impl Host,
    inside_container: bool,
    luid: Luid,
    device: Option<&Device>,
    notes: &mut Vec<String>,
) -> Result<Option<DriverStore>, WindowsError> {
    let path = match store_folder(host, luid, device) {
        Ok(path) => store_path::absolute(&path, host.system_root()),
        Err(reasons) => {
            // Software adapters such as the Basic Render Driver have no device and no driver.
            if device.is_some() {
                notes.push(format!("cannot find the driver store folder: {reasons}"));
            }
            return Ok(None);
        }
    };
    if inside_container {
        notes.push(format!("cannot list the runtime files of `{path}` inside a container"));
        let files = StoreFiles::Listed(BTreeSet::new());
        return Ok(Some(DriverStore { path, files, copy_to_vm: BTreeMap::new() }));
    }
    let copy_to_vm = match device.and_then(|device| device.pnp.driver_key.as_ref()) {
        Some(key) => copy_to_vm(host, key, notes)?,
        None => BTreeMap::new(),
    };
    // While a driver is replaced, the path can be that of a folder that does not exist (yet).
    let files = if host.has_folder(&path) {
        StoreFiles::OnDisk
    } else {
        notes.push(format!("driver store folder `{path}` does not exist"));
        StoreFiles::Listed(BTreeSet::new())
    };
    Ok(Some(DriverStore { path, files, copy_to_vm }))
}

fn copy_to_vm(
    host: &impl Host,
    key: &DriverKey,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<CopyToVmKey, BTreeMap<String, CopyToVmValue>>, WindowsError> {
    let keys = host.copy_to_vm(key)?;
    notes.extend(keys.unreadable.iter().map(|failure| error_chain(failure)));
    let mut read = BTreeMap::new();
    for (key, raw) in keys.read {
        let values = copy_to_vm::values(&key, raw, notes);
        read.insert(key, values);
    }
    Ok(read)
}

/// The driver's folder: from the graphics kernel, or else from the path of its INF, or else
/// from the user-mode drivers in the driver key. The error contains the reason of each.
fn store_folder(host: &impl Host, luid: Luid, device: Option<&Device>) -> Result<String, String> {
    let inf = device.and_then(|device| device.inf.as_deref());
    let key = device.and_then(|device| device.pnp.driver_key.as_ref());
    folder_by_kernel(host, luid)
        .or_else(|kernel| folder_by_inf(host, inf).map_err(|reason| format!("{kernel}; {reason}")))
        .or_else(|reasons| {
            folder_by_drivers(host, key).map_err(|reason| format!("{reasons}; {reason}"))
        })
}

fn folder_by_kernel(host: &impl Host, luid: Luid) -> Result<String, String> {
    host.begin(ReadStep::DriverStore(luid));
    let path = host.store_of_adapter(luid).map_err(|failure| error_chain(&failure))?;
    if path.is_empty() { Err("the graphics kernel reports no folder".to_owned()) } else { Ok(path) }
}

fn folder_by_inf(host: &impl Host, inf: Option<&str>) -> Result<String, String> {
    let inf = inf.ok_or("the device has no INF")?;
    let path = host.store_of_inf(inf).map_err(|failure| error_chain(&failure))?;
    let folder = store_path::parent(&path);
    folder.map(str::to_owned).ok_or_else(|| format!("path `{path}` of INF {inf} has no folder"))
}

fn folder_by_drivers(host: &impl Host, key: Option<&DriverKey>) -> Result<String, String> {
    let key = key.ok_or("the device has no driver key")?;
    let names = host.user_mode_drivers(key).map_err(|failure| error_chain(&failure))?;
    let folder = store_path::folder_of_user_mode_drivers(&names);
    folder
        .map(str::to_owned)
        .ok_or_else(|| format!("UserModeDriverName of driver key {key} contains no absolute path"))
}

#[cfg(test)]
mod tests;
