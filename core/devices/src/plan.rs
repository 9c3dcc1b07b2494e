//! Plans what one container gets for the device IDs that the kubelet allocates to it.
//!
//! Input: a resource's devices, device IDs and host facts. Output: one device entry,
//! mounts and environment variables, with every decision that an administrator may
//! ask about.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use printable::printable;

use crate::device_set::{ListedDevice, ResourceDevices, SlotError};
use crate::environment_hints;
use crate::mounts::{MountPlan, resolve};
use crate::{
    Device, DriverModel, EnvironmentHints, HcsSchema, HostFacts, LocationPath, MultiDevice, PnpId,
    ResourceName, SharedRequests,
};

/// `GUID_DEVINTERFACE_DISPLAY_ADAPTER`, the interface class that containerd and
/// hcsshim accept for "every GPU of the host".
pub const DISPLAY_ADAPTER_CLASS: &str = "5B45201D-F2F2-4F3B-85BB-30FF1F953599";

/// The first HCS schema that can assign one device to a container by location path.
pub const LOCATION_PATH_SCHEMA: HcsSchema = HcsSchema { major: 2, minor: 2 };

/// The first build with that schema (version 1903), for hosts whose schemas are unknown.
const LOCATION_PATH_BUILD: u32 = 18_362;

/// What a container gets.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The one device entry that Windows honours.
    pub device: DeviceGrant,
    /// The container's physical devices, each once, in the order of the advertised list.
    pub devices: Vec<Arc<Device>>,
    /// Runtime files.
    pub mounts: MountPlan,
    /// Environment variables.
    pub envs: BTreeMap<String, String>,
    /// What an administrator should know about this allocation.
    pub warnings: Vec<PlanWarning>,
}

/// How the container's device entry names its devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceGrant {
    /// One device, by location path.
    Location(LocationPath),
    /// Every device of the host with the display adapter interface.
    Class,
}

impl DeviceGrant {
    /// The host path of the device entry, in the syntax of containerd on Windows.
    #[must_use]
    pub fn host_path(&self) -> String {
        match self {
            DeviceGrant::Location(path) => format!("vpci-location-path://{path}"),
            DeviceGrant::Class => format!("class/{DISPLAY_ADAPTER_CLASS}"),
        }
    }
}

/// Something that an administrator should know about an allocation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanWarning {
    /// Several devices: the container can use every device of the host.
    #[error(
        "requested {0} devices, but Windows supports one device entry per container: the container \
         gets the class of all display adapters of the host"
    )]
    SeveralDevices(usize),
    /// The host cannot assign a single device.
    #[error(
        "this version of Windows cannot assign a device by location path (HCS schema 2.2, Windows \
         1903 or newer): the container gets the class of all display adapters of the host"
    )]
    NoLocationPathSupport,
    /// Replicas of one device add no capacity to a container.
    #[error("{slots} of the container's slots are replicas of the same device `{device}`")]
    ReplicasOfSameDevice {
        /// The container's slots on the device; at least 2.
        slots: usize,
        /// The device.
        device: PnpId,
    },
}

/// Why an allocation is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    /// The request is empty.
    #[error("the request contains no device IDs")]
    NoSlots,
    /// A device ID does not name a slot that can be allocated.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// Several slots of a shared resource under `sharedRequests: one`.
    #[error(
        "requested {requested} shared devices of {resource}; sharedRequests: one allows 1 per \
         container"
    )]
    SharedRequest {
        /// Slots in the request.
        requested: usize,
        /// The resource.
        resource: ResourceName,
    },
    /// Several devices under `multiDevice: reject`.
    #[error(
        "requested {} devices; Windows supports one per container and multiDevice is reject: {}",
        .0.len(), quoted_list(.0)
    )]
    SeveralDevices(Vec<PnpId>),
    /// A device without a location path where one is needed.
    #[error("device `{0}` has no location path")]
    NoLocationPath(PnpId),
}

fn quoted_list(ids: &[PnpId]) -> String {
    let quoted: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    quoted.join(", ")
}

/// Plans a container that gets the slots `ids` of `resource`. `exists` answers whether
/// a file of a live host exists; inventories record it themselves.
pub fn plan<'a>(
    resource: &ResourceDevices,
    ids: impl IntoIterator<Item = &'a str>,
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
) -> Result<Plan, PlanError> {
    let request = Request::read(resource, ids)?;
    let entries: Vec<&ListedDevice> = request.devices().collect();
    let first = *entries.first().ok_or(PlanError::NoSlots)?;
    request.check_sharing()?;
    let mut warnings = Vec::new();
    let device = grant(&entries, host, &mut warnings)?;
    warnings.extend(request.replica_warnings());
    let legacy = first.policy.model == DriverModel::Legacy;
    let mut envs = BTreeMap::new();
    if first.policy.container.environment_hints == EnvironmentHints::Set {
        let devices = entries.iter().map(|entry| (&*entry.device, &*entry.hints));
        environment_hints::add(&mut envs, devices);
    }
    if legacy {
        add_legacy(&mut envs, &first.device);
    }
    let mounts = if legacy {
        MountPlan::default()
    } else {
        resolve(entries.iter().map(|entry| entry.device_mounts()), host, exists)
    };
    let devices = entries.iter().map(|entry| entry.device.clone()).collect();
    Ok(Plan { device, devices, mounts, envs, warnings })
}

/// Whether HCS on this host supports `vpci-location-path`. A host about which nothing
/// is known counts as supporting it, because every supported Windows except Server
/// 2019 does.
#[must_use]
pub fn takes_location_paths(host: &HostFacts) -> bool {
    if !host.hcs_schemas.is_empty() {
        return host.hcs_schemas.iter().any(|schema| *schema >= LOCATION_PATH_SCHEMA);
    }
    host.build.is_none_or(|build| build.build >= LOCATION_PATH_BUILD)
}

/// The requested slots, by device in the order of the advertised list: the
/// kubelet sends a container's device IDs in random order, and equal allocations
/// should give equal containers.
struct Request<'r> {
    /// Device index and replica.
    slots: BTreeSet<(usize, u32)>,
    resource: &'r ResourceDevices,
}

impl<'r> Request<'r> {
    fn read<'a>(
        resource: &'r ResourceDevices,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> Result<Request<'r>, PlanError> {
        let slots = ids
            .into_iter()
            .map(|id| resource.locate_healthy(id).map(|slot| (slot.device_index, slot.replica)));
        Ok(Request { slots: slots.collect::<Result<_, SlotError>>()?, resource })
    }

    /// The devices of the slots, each once.
    fn devices(&self) -> impl Iterator<Item = &'r ListedDevice> {
        self.slots_by_device().into_keys().map(|index| &self.resource.entries()[index])
    }

    fn slots_by_device(&self) -> BTreeMap<usize, usize> {
        let mut counts = BTreeMap::new();
        for (index, _) in &self.slots {
            *counts.entry(*index).or_default() += 1;
        }
        counts
    }

    fn check_sharing(&self) -> Result<(), PlanError> {
        let sharing = self.resource.spec.sharing;
        let shared = sharing.replicas.get() > 1;
        if shared && sharing.shared_requests == SharedRequests::One && self.slots.len() > 1 {
            let name = self.resource.spec.name.clone();
            return Err(PlanError::SharedRequest { requested: self.slots.len(), resource: name });
        }
        Ok(())
    }

    fn replica_warnings(&self) -> impl Iterator<Item = PlanWarning> {
        let repeated = self.slots_by_device().into_iter().filter(|(_, slots)| *slots > 1);
        repeated.map(|(index, slots)| PlanWarning::ReplicasOfSameDevice {
            slots,
            device: self.resource.entries()[index].device.id.clone(),
        })
    }
}

fn grant(
    entries: &[&ListedDevice],
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
        warnings.push(PlanWarning::NoLocationPathSupport);
        return Ok(DeviceGrant::Class);
    }
    let device = &entries[0].device;
    let path = device.location_path.clone();
    path.map(DeviceGrant::Location).ok_or_else(|| PlanError::NoLocationPath(device.id.clone()))
}

/// The variables that the device plugin of 2019 (`microsoft.com/directx`) set.
fn add_legacy(envs: &mut BTreeMap<String, String>, device: &Device) {
    let version = device.driver_version.map(|v| v.to_string()).unwrap_or_default();
    for (name, value) in [
        ("DIRECTX_GPU_Name", printable(&device.description).into_owned()),
        ("DIRECTX_GPU_PNPDeviceID", printable(device.id.as_str()).into_owned()),
        ("DIRECTX_GPU_DriverVersion", version),
    ] {
        envs.insert(name.to_owned(), value);
    }
}
