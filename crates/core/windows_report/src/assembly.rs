//! Assembles a snapshot of the host from the data that Windows returns.
//!
//! [`Host`] provides the data. This module joins and orders it, uses fallbacks and skips
//! what cannot be read. The tests simulate a host.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use host::{
    Adapter, AdapterWarning, Attributes, CopyToVmKey, CopyToVmValue, DriverKey, DriverStore,
    HostFacts, HostSnapshot, Luid, PnpDevice, ReadStep, SourceError, StoreFiles, WarningEffect,
};

use crate::copy_to_vm::{self, RawValue};
use crate::kernel_report::KernelReport;
use crate::store_path;

/// The data that the assembly needs from Windows. Each result is valid only at the time of
/// the call: an adapter can disappear between two calls.
pub trait Host {
    /// The adapters that Windows lists, in its order, with their attributes.
    fn adapters(&self) -> Vec<(Luid, Attributes)>;
    /// An adapter without its attributes, its device and its driver. What cannot be read and is
    /// not required is missing, with a note.
    fn adapter(&self, luid: Luid, notes: &mut Vec<String>) -> io::Result<Adapter>;
    /// The present devices that belong to an adapter, and the display and compute devices that have
    /// a problem code and none.
    fn devices(&self) -> io::Result<Vec<Candidate>>;
    /// The present devices of these adapters, to which the graphics kernel leads: no device has their
    /// LUID, because this Windows lacks that property, or the driver does not set it.
    fn devices_by_key(&self, luids: &[Luid]) -> io::Result<Vec<Candidate>>;
    /// The driver store folder that the graphics kernel reports.
    fn store_of_adapter(&self, luid: Luid) -> io::Result<String>;
    /// The value `UserModeDriverName` of a driver key.
    fn user_mode_drivers(&self, key: &DriverKey) -> io::Result<Vec<String>>;
    /// The `CopyToVm*` keys in a driver key and in its direct subkeys.
    fn copy_to_vm(&self, key: &DriverKey) -> io::Result<CopyToVmKeys>;
    /// Whether a folder exists. A folder that cannot be examined counts as existing.
    fn has_folder(&self, path: &str) -> bool;
    /// The Windows folder, `C:\Windows`.
    fn system_root(&self) -> &str;
    /// Called before each call that may not return, so that it can be named.
    fn begin(&self, step: ReadStep);
}

/// The `CopyToVm*` keys of a driver.
#[derive(Debug, Default)]
pub struct CopyToVmKeys {
    /// Each key with its unparsed values.
    pub read: Vec<(CopyToVmKey, Vec<RawValue>)>,
    /// The errors of the existing keys that cannot be read.
    pub unreadable: Vec<io::Error>,
}

/// A present display or compute device.
#[derive(Debug)]
pub struct Candidate {
    /// The LUID of its adapter, if it has one.
    pub luid: Option<Luid>,
    /// The index of the device in a linked adapter; 0 if it is the only device.
    pub physical_index: u32,
    /// The device, or the reason why a required property cannot be read.
    pub device: io::Result<PnpDevice>,
    /// What else could not be read.
    pub notes: Vec<String>,
}

impl Candidate {
    /// Whether both are the same device.
    fn is_of(&self, other: &Candidate) -> bool {
        matches!((&self.device, &other.device), (Ok(one), Ok(other)) if one.id == other.id)
    }
}

/// Reads every adapter of `host`. If an adapter or a part of it cannot be read, it is skipped
/// with a warning.
pub fn read(host: &impl Host, facts: HostFacts) -> Result<HostSnapshot, SourceError> {
    host.begin(ReadStep::Devices);
    let (mut devices, mut without_luid) = by_luid(host.devices()?);
    let inside_container = facts.inside_container;
    let mut snapshot = HostSnapshot { host: facts, ..HostSnapshot::default() };
    let all = host.adapters();
    let luids = all.iter().map(|(luid, _)| *luid);
    let without_device: Vec<Luid> = luids.filter(|luid| !devices.contains_key(luid)).collect();
    if !without_device.is_empty() {
        let (found, _) = by_luid(host.devices_by_key(&without_device)?);
        without_luid.retain(|candidate| !found.values().any(|other| other.is_of(candidate)));
        devices.extend(found);
    }
    for listed in all {
        let luid = listed.0;
        let mut notes = Vec::new();
        let read = adapter(host, inside_container, listed, devices.remove(&luid), &mut notes);
        let (effect, notes) = match read {
            Ok(adapter) => {
                snapshot.adapters.push(adapter);
                (WarningEffect::Incomplete, notes)
            }
            Err(failure) => (WarningEffect::Unreadable, vec![failure.to_string()]),
        };
        let warnings = notes.into_iter().map(|text| AdapterWarning { luid, text, effect });
        snapshot.warnings.extend(warnings);
    }
    // A device may keep the LUID of an adapter that Windows no longer lists.
    let without_adapter = without_luid.into_iter().chain(devices.into_values());
    snapshot.devices_without_adapter = without_adapter
        .filter_map(|candidate| candidate.device.ok())
        .filter(|device| device.problem_code != 0)
        .collect();
    Ok(snapshot)
}

/// The warnings about the adapters that only the graphics kernel lists, with what it reports about
/// each. `devices` are those of the host.
#[must_use]
pub fn not_listed(
    only_in_kernel: Vec<(Luid, io::Result<KernelReport>)>,
    devices: Vec<Candidate>,
) -> Vec<AdapterWarning> {
    let (devices, _) = by_luid(devices);
    let warnings = only_in_kernel.into_iter().filter_map(|(luid, report)| {
        let pnp = devices.get(&luid).and_then(|candidate| candidate.device.as_ref().ok());
        // A driver that is being updated cannot be read, and comes back.
        not_listed_adapter(luid, &report.ok()?, pnp)
    });
    warnings.collect()
}

/// The warning about an adapter that only the graphics kernel lists. Displays and software are not
/// missing, and a device with a problem is reported as such.
fn not_listed_adapter(
    luid: Luid,
    report: &KernelReport,
    pnp: Option<&PnpDevice>,
) -> Option<AdapterWarning> {
    let adapter = Adapter { pnp: pnp.cloned(), ..report.adapter(luid) };
    let has_problem = pnp.is_some_and(|pnp| pnp.problem_code != 0);
    if has_problem || !report.can_compute() || !adapter.is_gpu_or_accelerator() {
        return None;
    }
    let id = pnp.map(|pnp| format!(" ({})", pnp.id)).unwrap_or_default();
    let name = Some(adapter.name()).filter(|name| !name.is_empty()).unwrap_or("an adapter");
    let text = format!("DXCore does not list {name}{id}, which the graphics kernel lists");
    Some(AdapterWarning { luid, text, effect: WarningEffect::NotListed })
}

/// One device for each LUID, and the devices without one. For a linked adapter, this is the first
/// physical device.
fn by_luid(candidates: Vec<Candidate>) -> (BTreeMap<Luid, Candidate>, Vec<Candidate>) {
    let mut devices: BTreeMap<Luid, Candidate> = BTreeMap::new();
    let mut without_luid = Vec::new();
    for candidate in candidates {
        let Some(luid) = candidate.luid else {
            without_luid.push(candidate);
            continue;
        };
        let existing = devices.get(&luid);
        if existing.is_none_or(|other| candidate.physical_index < other.physical_index) {
            devices.insert(luid, candidate);
        }
    }
    (devices, without_luid)
}

fn adapter(
    host: &impl Host,
    inside_container: bool,
    (luid, attributes): (Luid, Attributes),
    candidate: Option<Candidate>,
    notes: &mut Vec<String>,
) -> io::Result<Adapter> {
    host.begin(ReadStep::Adapter(luid));
    let adapter = host.adapter(luid, notes)?;
    let pnp = match candidate {
        Some(candidate) => {
            notes.extend(candidate.notes);
            Some(candidate.device?)
        }
        None => None,
    };
    let adapter = Adapter { attributes, pnp, ..adapter };
    // Nobody gets an indirect display, so nothing can be wrong with its driver.
    if adapter.is_indirect_display() {
        return Ok(adapter);
    }
    let driver_store = driver_store(host, inside_container, luid, adapter.pnp.as_ref(), notes)?;
    Ok(Adapter { driver_store, ..adapter })
}

fn driver_store(
    host: &impl Host,
    inside_container: bool,
    luid: Luid,
    device: Option<&PnpDevice>,
    notes: &mut Vec<String>,
) -> io::Result<Option<DriverStore>> {
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
    let copy_to_vm = match device.and_then(|device| device.driver_key.as_ref()) {
        Some(key) => copy_to_vm(host, key, notes)?,
        None => BTreeMap::new(),
    };
    // While a driver is replaced, the path can name a folder that does not exist yet.
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
) -> io::Result<BTreeMap<CopyToVmKey, BTreeMap<String, CopyToVmValue>>> {
    let keys = host.copy_to_vm(key)?;
    notes.extend(keys.unreadable.iter().map(ToString::to_string));
    let mut read = BTreeMap::new();
    for (key, raw) in keys.read {
        let values = copy_to_vm::values(&key, raw, notes);
        read.insert(key, values);
    }
    Ok(read)
}

/// The driver's folder: from the graphics kernel, or else from the user-mode drivers in the driver
/// key. The error contains the reason of each.
fn store_folder(
    host: &impl Host,
    luid: Luid,
    device: Option<&PnpDevice>,
) -> Result<String, String> {
    let key = device.and_then(|device| device.driver_key.as_ref());
    folder_by_kernel(host, luid).or_else(|kernel| {
        folder_by_drivers(host, key).map_err(|reason| format!("{kernel}; {reason}"))
    })
}

fn folder_by_kernel(host: &impl Host, luid: Luid) -> Result<String, String> {
    host.begin(ReadStep::DriverStore(luid));
    let path = host.store_of_adapter(luid).map_err(|failure| failure.to_string())?;
    if path.is_empty() { Err("the graphics kernel reports no folder".to_owned()) } else { Ok(path) }
}

fn folder_by_drivers(host: &impl Host, key: Option<&DriverKey>) -> Result<String, String> {
    let key = key.ok_or("the device has no driver key")?;
    let names = host.user_mode_drivers(key).map_err(|failure| failure.to_string())?;
    let folder = store_path::folder_of_user_mode_drivers(&names);
    folder
        .map(str::to_owned)
        .ok_or_else(|| format!("UserModeDriverName of driver key {key} contains no absolute path"))
}

#[cfg(test)]
mod tests;
