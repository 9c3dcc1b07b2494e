//! The plan: what one container is given for its slots.
//!
//! In come a resource's devices, slot ids and host facts; out goes one device
//! string, mounts and environment, with every decision that somebody may ask about.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::device_set::{Entry, ResourceDevices, SlotFault};
use crate::mounts::{MountPlan, resolve};
use crate::{
    Device, DriverModel, HcsSchema, Hints, HostFacts, LocationPath, MultiDevice, PnpId, hints,
};

/// `GUID_DEVINTERFACE_DISPLAY_ADAPTER`, the interface class that containerd and
/// hcsshim take for "every GPU of the host".
pub const DISPLAY_ADAPTER_CLASS: &str = "5B45201D-F2F2-4F3B-85BB-30FF1F953599";

/// The HCS schema from which a container can be given one device by location path.
pub const LOCATION_PATH_SCHEMA: HcsSchema = HcsSchema { major: 2, minor: 2 };

/// The build with that schema (version 1903), for hosts whose schemas are not known.
const LOCATION_PATH_BUILD: u32 = 18_362;

/// What a container is given.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The one device that survives on Windows.
    pub device: DeviceGrant,
    /// The container's physical devices, each once, in the order of the advertised list.
    pub devices: Vec<Arc<Device>>,
    /// Runtime files.
    pub mounts: MountPlan,
    /// Environment variables.
    pub envs: BTreeMap<String, String>,
    /// What an administrator should know of this allocation.
    pub warnings: Vec<PlanWarning>,
}

/// How a container is given its devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceGrant {
    /// One device, by location path.
    Location(LocationPath),
    /// Every device with the display adapter interface.
    Class,
}

impl DeviceGrant {
    /// The host path of the device specification, as containerd on Windows reads it.
    #[must_use]
    pub fn host_path(&self) -> String {
        match self {
            DeviceGrant::Location(path) => format!("vpci-location-path://{path}"),
            DeviceGrant::Class => format!("class/{DISPLAY_ADAPTER_CLASS}"),
        }
    }
}

/// Something an administrator should know of an allocation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanWarning {
    /// Several devices: the container can use every device of the host.
    #[error(
        "{0} devices for one container: Windows keeps one device entry, so the container is given \
         the class of all display adapters of the host"
    )]
    SeveralDevices(usize),
    /// The host cannot give one device alone.
    #[error(
        "this Windows cannot give a container one device by its location path (HCS schema 2.2, \
         Windows 1903 or newer), so the container is given the class of all display adapters"
    )]
    OldHost,
}

/// Why slots cannot be given.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    /// No slot was asked for.
    #[error("the request names no slot")]
    NoSlots,
    /// A slot id names nothing that can be given.
    #[error(transparent)]
    Slot(#[from] SlotFault),
    /// Several devices under `multiDevice: reject`.
    #[error(
        "a container on Windows can have one device alone, this one asks for {}, and multiDevice \
         is reject", names(.0)
    )]
    SeveralDevices(Vec<PnpId>),
    /// A device without a location path where one is needed.
    #[error("device `{0}` has no location path")]
    NoLocationPath(PnpId),
}

fn names(ids: &[PnpId]) -> String {
    let quoted: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    quoted.join(" and ")
}

/// Plans a container that is given the slots `ids` of `resource`. `exists` answers
/// whether a file of a live host is there; recordings answer for themselves.
pub fn plan<'a>(
    resource: &ResourceDevices,
    ids: impl IntoIterator<Item = &'a str>,
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
) -> Result<Plan, PlanError> {
    let entries = distinct(resource, ids)?;
    let first = *entries.first().ok_or(PlanError::NoSlots)?;
    let mut warnings = Vec::new();
    let device = grant(&entries, host, &mut warnings)?;
    let legacy = first.policy.model == DriverModel::Legacy;
    let mut envs = BTreeMap::new();
    if first.policy.container.hints == Hints::Set {
        hints::add(&mut envs, entries.iter().map(|entry| (&*entry.device, &*entry.hints)));
    }
    if legacy {
        add_legacy(&mut envs, &first.device);
    }
    let mounts =
        if legacy { MountPlan::default() } else { resolve(entries.iter().copied(), host, exists) };
    let devices = entries.iter().map(|entry| entry.device.clone()).collect();
    Ok(Plan { device, devices, mounts, envs, warnings })
}

/// The devices of the slots, each once, in the order of the list that was
/// advertised: kubelets hand over a container's slots in random order, and equal
/// allocations should give equal containers.
fn distinct<'a, 'r>(
    resource: &'r ResourceDevices,
    ids: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'r Entry>, PlanError> {
    let mut numbers = BTreeSet::new();
    for id in ids {
        numbers.insert(resource.locate_healthy(id)?.0);
    }
    Ok(numbers.into_iter().map(|number| &resource.entries()[number]).collect())
}

fn grant(
    entries: &[&Entry],
    host: &HostFacts,
    warnings: &mut Vec<PlanWarning>,
) -> Result<DeviceGrant, PlanError> {
    let policy = &entries[0].policy;
    if policy.model == DriverModel::Legacy {
        return Ok(DeviceGrant::Class);
    }
    if entries.len() > 1 {
        if policy.container.multi_device == MultiDevice::Reject {
            let ids = entries.iter().map(|entry| entry.device.id.clone()).collect();
            return Err(PlanError::SeveralDevices(ids));
        }
        warnings.push(PlanWarning::SeveralDevices(entries.len()));
        return Ok(DeviceGrant::Class);
    }
    if !takes_location_paths(host) {
        warnings.push(PlanWarning::OldHost);
        return Ok(DeviceGrant::Class);
    }
    let device = &entries[0].device;
    let path = device.location_path.clone();
    path.map(DeviceGrant::Location).ok_or_else(|| PlanError::NoLocationPath(device.id.clone()))
}

/// Whether HCS on this host takes `vpci-location-path`. A host of which nothing is
/// known is taken for one that does, as every supported Windows but Server 2019 is.
#[must_use]
pub fn takes_location_paths(host: &HostFacts) -> bool {
    if !host.hcs_schemas.is_empty() {
        return host.hcs_schemas.iter().any(|schema| *schema >= LOCATION_PATH_SCHEMA);
    }
    host.build.is_none_or(|build| build.build >= LOCATION_PATH_BUILD)
}

/// The variables that the plugin of 2019 set.
fn add_legacy(envs: &mut BTreeMap<String, String>, device: &Device) {
    let version = device.driver_version.map(|v| v.to_string()).unwrap_or_default();
    for (name, value) in [
        ("DIRECTX_GPU_Name", device.description.clone()),
        ("DIRECTX_GPU_PNPDeviceID", device.id.to_string()),
        ("DIRECTX_GPU_DriverVersion", version),
    ] {
        envs.insert(name.to_owned(), value);
    }
}
