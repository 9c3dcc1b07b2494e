//! From what Windows answers to one snapshot of the host.
//!
//! [`Host`] is what the assembly asks of Windows; everything decided about the
//! answers (joining, ordering, falling back, leaving out) is here, and runs on any
//! OS against a host of the tests.

use std::collections::{BTreeMap, BTreeSet};

use devices::{
    Adapter, AdapterKind, AdapterWarning, Attachment, Attribute, Attributes, CopyToVmKey,
    CopyToVmValue, DriverKey, DriverStore, DriverVersion, HardwareId, HostFacts, HostSnapshot,
    Luid, Placement, PnpDevice, SourceError, StoreFiles, WarningEffect,
};

use crate::copy_to_vm::{self, RawValue};
use crate::failure::{Failure, in_words};
use crate::{order, store_path};

/// What the assembly asks of Windows. Every answer is of its moment: an adapter may
/// go away between two calls.
pub(crate) trait Host {
    /// The LUIDs that `DXCore` lists under each attribute it knows, in its order.
    fn lists(&self) -> Result<Vec<(Attribute, Vec<Luid>)>, Failure>;
    /// What `DXCore` says of one adapter.
    fn adapter(&self, luid: Luid) -> Result<AdapterFacts, Failure>;
    /// The present devices that carry an adapter's LUID.
    fn devices(&self) -> Result<Vec<Candidate>, Failure>;
    /// The driver store folder as the graphics kernel knows it.
    fn store_of_adapter(&self, luid: Luid) -> Result<String, Failure>;
    /// The path in the driver store of an installed INF (`oem12.inf`).
    fn store_of_inf(&self, inf: &str) -> Result<String, Failure>;
    /// `UserModeDriverName` of a driver key.
    fn user_mode_drivers(&self, key: &DriverKey) -> Result<Vec<String>, Failure>;
    /// The `CopyToVm*` keys in a driver key and in its direct subkeys.
    fn copy_to_vm(&self, key: &DriverKey) -> Result<CopyToVmKeys, Failure>;
    /// The Windows folder, `C:\Windows`.
    fn system_root(&self) -> &str;
}

/// The `CopyToVm*` keys of a driver.
#[derive(Debug, Default)]
pub(crate) struct CopyToVmKeys {
    /// Each key with its values as they are.
    pub(crate) read: Vec<(CopyToVmKey, Vec<RawValue>)>,
    /// The keys that are there and could not be read.
    pub(crate) unread: Vec<Failure>,
}

/// What `DXCore` says of an adapter, its lists aside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AdapterFacts {
    pub(crate) kind: AdapterKind,
    pub(crate) placement: Placement,
    pub(crate) attachment: Attachment,
    pub(crate) hardware_id: HardwareId,
    pub(crate) driver_description: String,
    pub(crate) driver_version: Option<DriverVersion>,
    pub(crate) dedicated_memory: Option<u64>,
}

/// A present device that carries a LUID.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The adapter's LUID.
    pub(crate) luid: Luid,
    /// Which of a linked adapter's physical devices this is; 0 where it is the only one.
    pub(crate) physical_index: u32,
    /// The device, or why its properties could not be read.
    pub(crate) device: Result<Device, Failure>,
}

/// A device and what leads to its driver's folder.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) pnp: PnpDevice,
    /// `DEVPKEY_Device_DriverInfPath`: the installed INF's name.
    pub(crate) inf: Option<String>,
}

/// Reads every adapter of `host`. What cannot be read of one adapter leaves that one
/// out, or that part of it, with a warning.
pub(crate) fn read(host: &impl Host, facts: HostFacts) -> Result<HostSnapshot, SourceError> {
    let lists = host.lists()?;
    let mut devices = joined(host.devices()?);
    let mut snapshot = HostSnapshot { host: facts, ..HostSnapshot::default() };
    let luids: Vec<Vec<Luid>> = lists.iter().map(|(_, luids)| luids.clone()).collect();
    for luid in order::merged(&luids) {
        let mut notes = Vec::new();
        let attributes = lists.iter().filter(|(_, luids)| luids.contains(&luid)).map(|(a, _)| *a);
        match adapter(host, luid, attributes.collect(), devices.remove(&luid), &mut notes) {
            Ok(adapter) => snapshot.adapters.push(adapter),
            Err(failure) => {
                let text = in_words(&failure);
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

/// One device for each LUID: of a linked adapter's devices the first physical one.
fn joined(candidates: Vec<Candidate>) -> BTreeMap<Luid, Candidate> {
    let mut devices: BTreeMap<Luid, Candidate> = BTreeMap::new();
    for candidate in candidates {
        let held = devices.get(&candidate.luid);
        if held.is_none_or(|held| candidate.physical_index < held.physical_index) {
            devices.insert(candidate.luid, candidate);
        }
    }
    devices
}

fn adapter(
    host: &impl Host,
    luid: Luid,
    attributes: Attributes,
    candidate: Option<Candidate>,
    notes: &mut Vec<String>,
) -> Result<Adapter, Failure> {
    let facts = host.adapter(luid)?;
    let device = candidate.map(|candidate| candidate.device).transpose()?;
    let driver_store = driver_store(host, luid, device.as_ref(), notes)?;
    Ok(Adapter {
        luid,
        attributes,
        kind: facts.kind,
        placement: facts.placement,
        attachment: facts.attachment,
        hardware_id: facts.hardware_id,
        driver_description: facts.driver_description,
        driver_version: facts.driver_version,
        dedicated_memory_mib: facts.dedicated_memory.map(|bytes| bytes >> 20),
        pnp: device.map(|device| device.pnp),
        driver_store,
    })
}

fn driver_store(
    host: &impl Host,
    luid: Luid,
    device: Option<&Device>,
    notes: &mut Vec<String>,
) -> Result<Option<DriverStore>, Failure> {
    let path = match store_folder(host, luid, device) {
        Ok(path) => store_path::absolute(&path, host.system_root()),
        Err(reasons) => {
            // The Basic Render Driver and its like have neither device nor driver.
            if device.is_some() {
                notes.push(format!("its driver store folder could not be found: {reasons}"));
            }
            return Ok(None);
        }
    };
    if store_path::is_inside_container(&path) {
        notes.push(format!("inside a container the runtime files of `{path}` cannot be listed"));
        let files = StoreFiles::Listed(BTreeSet::new());
        return Ok(Some(DriverStore { path, files, copy_to_vm: BTreeMap::new() }));
    }
    let copy_to_vm = match device.and_then(|device| device.pnp.driver_key.as_ref()) {
        Some(key) => copy_to_vm(host, key, notes)?,
        None => BTreeMap::new(),
    };
    Ok(Some(DriverStore { path, files: StoreFiles::OnDisk, copy_to_vm }))
}

fn copy_to_vm(
    host: &impl Host,
    key: &DriverKey,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<CopyToVmKey, BTreeMap<String, CopyToVmValue>>, Failure> {
    let keys = host.copy_to_vm(key)?;
    notes.extend(keys.unread.iter().map(|failure| in_words(failure)));
    let mut read = BTreeMap::new();
    for (key, raw) in keys.read {
        let values = copy_to_vm::values(&key, raw, notes);
        read.insert(key, values);
    }
    Ok(read)
}

/// The driver's folder: from the graphics kernel, else from the place of its INF, else
/// from the user-mode drivers that the driver key names. Else why not.
fn store_folder(host: &impl Host, luid: Luid, device: Option<&Device>) -> Result<String, String> {
    let inf = device.and_then(|device| device.inf.as_deref());
    let key = device.and_then(|device| device.pnp.driver_key.as_ref());
    folder_by_kernel(host, luid)
        .or_else(|kernel| folder_by_inf(host, inf).map_err(|reason| format!("{kernel}; {reason}")))
        .or_else(|earlier| {
            folder_by_drivers(host, key).map_err(|reason| format!("{earlier}; {reason}"))
        })
}

fn folder_by_kernel(host: &impl Host, luid: Luid) -> Result<String, String> {
    let path = host.store_of_adapter(luid).map_err(|failure| in_words(&failure))?;
    if path.is_empty() { Err("the graphics kernel names no folder".to_owned()) } else { Ok(path) }
}

fn folder_by_inf(host: &impl Host, inf: Option<&str>) -> Result<String, String> {
    let inf = inf.ok_or("the device names no INF")?;
    let path = host.store_of_inf(inf).map_err(|failure| in_words(&failure))?;
    let folder = store_path::parent(&path);
    folder.map(str::to_owned).ok_or_else(|| format!("INF {inf} is at `{path}`, in no folder"))
}

fn folder_by_drivers(host: &impl Host, key: Option<&DriverKey>) -> Result<String, String> {
    let key = key.ok_or("the device names no driver key")?;
    let names = host.user_mode_drivers(key).map_err(|failure| in_words(&failure))?;
    let folder = store_path::folder_of_user_mode_drivers(&names);
    folder.map(str::to_owned).ok_or_else(|| format!("driver key {key} names no absolute path"))
}

#[cfg(test)]
mod tests;
