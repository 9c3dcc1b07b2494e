//! Plans what one container gets for the device IDs that the kubelet allocates to it.
//!
//! A plan has one device entry, mounts and environment variables, and the reason for every
//! decision.

pub(crate) mod container_contents;
pub(crate) mod environment_hints;
pub(crate) mod launcher;
pub(crate) mod mounts;
pub(crate) mod preferred_allocation;
pub(crate) mod source_patterns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use host::printable::printable;
use host::{HostBuild, HostFacts, LocationPath, PnpId};

use crate::plan::container_contents::{ContainerContents, PlanWarning};
use crate::plan::launcher::LauncherProblem;
use crate::plan::mounts::{MountPlan, resolve};
use crate::plan::source_patterns::Disk;
use crate::set::device_set::{ListedDevice, ReplicaError, ResourceDevices};
use crate::{
    Device, DeviceClass, DriverModel, ModelPolicy, MultiDevice, ResourceName, ResourceSpec,
    SharedRequests, Visibility,
};

/// The first build that can assign one device to a container by location path: version 1903, whose
/// Host Compute Service has schema 2.2.
const LOCATION_PATH_BUILD: u32 = 18_362;

/// What a container gets.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The one device entry that reaches Windows.
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
    /// Every device of the host in the class.
    Class(DeviceClass),
}

impl DeviceGrant {
    /// The host path of the device entry, in the syntax of containerd.
    #[must_use]
    pub fn host_path(&self) -> String {
        match self {
            DeviceGrant::Location(path) => format!("vpci-location-path://{path}"),
            DeviceGrant::Class(class) => format!("class/{class}"),
        }
    }
}

/// Why an allocation is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, strum::EnumCount)]
pub enum PlanError {
    /// The request is empty.
    #[error("the request contains no device IDs")]
    NoReplicas,
    /// A device ID does not name a replica that can be allocated.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// Several replicas of a shared resource under `sharedRequests: one`.
    #[error(
        "requested {requested} shared devices of {resource}; sharedRequests: one allows 1 per \
         container"
    )]
    SharedRequest {
        /// Replicas in the request.
        requested: usize,
        resource: ResourceName,
    },
    /// Several devices under `multiDevice: reject`.
    #[error(
        "requested {} devices; Windows supports one per container and multiDevice is reject: {}",
        .0.len(), quoted_list(.0)
    )]
    SeveralDevices(Vec<PnpId>),
    /// Several devices, or a host that cannot assign a single one, and no class that
    /// contains them.
    #[error(
        "{}, compute-only devices are not display adapters, and deviceClass is not set for the \
         driver model {model} (untested candidate: {}, every adapter of the host): {}",
        no_single_entry(*.requested), DeviceClass::EVERY_ADAPTER, quoted_list(.devices)
    )]
    NoDeviceClass {
        /// The container's devices.
        requested: usize,
        /// The driver model without a class.
        model: DriverModel,
        /// The container's devices of this driver model.
        devices: Vec<PnpId>,
    },
    /// Several devices whose driver models have different classes.
    #[error(
        "requested {} devices; Windows supports one per container and deviceClass differs between \
         the driver models of: {}",
        .0.len(), quoted_list(.0)
    )]
    DifferentClasses(Vec<PnpId>),
    /// Containers must get `directx-visible`, and this one cannot.
    #[error("{problem}, and the visibility of {resource} is required")]
    NoLauncher {
        /// Why the container does not get it.
        problem: LauncherProblem,
        resource: ResourceName,
    },
    /// A device without a location path where one is needed.
    #[error("device `{0}` has no location path")]
    NoLocationPath(PnpId),
}

fn no_single_entry(requested: usize) -> String {
    if requested > 1 {
        return format!(
            "requested {requested} devices; Windows supports one per container (multiDevice: \
             first gives it one of them)"
        );
    }
    "this version of Windows cannot assign a device by location path (HCS schema 2.2, Windows 1903 \
     or newer)"
        .to_owned()
}

fn quoted_list(ids: &[PnpId]) -> String {
    let quoted: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    quoted.join(", ")
}

/// Plans a container that gets the replicas `ids` of `resource`. `exists` answers whether
/// a file of a live host exists; inventories record it themselves. For additional mounts with a
/// pattern, a live host needs [`plan_on_disk`].
pub fn plan<'a>(
    resource: &ResourceDevices,
    ids: impl IntoIterator<Item = &'a str>,
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
) -> Result<Plan, PlanError> {
    plan_on_disk(resource, ids, host, without_folders(exists))
}

/// Plans a container that gets the replicas `ids` of `resource` on a host with this disk.
pub fn plan_on_disk<'a>(
    resource: &ResourceDevices,
    ids: impl IntoIterator<Item = &'a str>,
    host: &HostFacts,
    disk: Disk<'_>,
) -> Result<Plan, PlanError> {
    let mut request = Request::read(resource, ids)?;
    let mut warnings = Vec::from_iter(request.keep_first());
    let device = grant(&request.entries, host, &mut warnings)?;
    warnings.extend(request.replica_warnings());
    let ContainerContents { devices, mounts, envs } =
        request.contents(host, disk, &mut warnings)?;
    Ok(Plan { device, devices, mounts, envs, warnings })
}

/// The part of a [`plan`] that does not depend on how the container's devices are named,
/// for runtimes that honor several device entries.
pub fn contents<'a>(
    resource: &ResourceDevices,
    ids: impl IntoIterator<Item = &'a str>,
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
) -> Result<ContainerContents, PlanError> {
    Request::read(resource, ids)?.contents(host, without_folders(exists), &mut Vec::new())
}

fn without_folders(exists: &dyn Fn(&str) -> bool) -> Disk<'_> {
    Disk { exists, folders: &|_| Vec::new() }
}

/// How a container on a Windows host gets one device of a driver model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SingleDevice {
    /// Only this device, by its location path.
    LocationPath,
    Class(DeviceClass),
    /// Not at all: the build cannot assign the device, and no class contains it.
    Refused,
}

/// How a container on a host with this build gets one device of the driver model of `policy`.
#[must_use]
pub fn single_device(policy: &ModelPolicy, build: Option<HostBuild>) -> SingleDevice {
    if policy.model != DriverModel::Legacy && takes_location_paths(build) {
        return SingleDevice::LocationPath;
    }
    policy.device_class().map_or(SingleDevice::Refused, SingleDevice::Class)
}

/// Whether this Windows build supports `vpci-location-path`. An unknown one counts as
/// supporting it, because every supported Windows except Server 2019 does.
fn takes_location_paths(build: Option<HostBuild>) -> bool {
    build.is_none_or(|build| build.build >= LOCATION_PATH_BUILD)
}

/// The requested replicas, by device in the order of the advertised list: the
/// kubelet sends a container's device IDs in random order, and equal allocations
/// should give equal containers.
struct Request<'r> {
    resource: &'r ResourceSpec,
    /// The devices of the replicas, each once; at least one.
    entries: Vec<&'r ListedDevice>,
    /// The number of replicas on each of them.
    replicas: Vec<usize>,
}

impl<'r> Request<'r> {
    fn read<'a>(
        resource: &'r ResourceDevices,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> Result<Request<'r>, PlanError> {
        let replicas = ids
            .into_iter()
            .map(|id| {
                resource.locate_healthy(id).map(|replica| (replica.device_index, replica.number))
            })
            .collect::<Result<BTreeSet<(usize, u32)>, ReplicaError>>()?;
        if replicas.is_empty() {
            return Err(PlanError::NoReplicas);
        }
        check_sharing(resource, replicas.len())?;
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (index, _) in replicas {
            *counts.entry(index).or_default() += 1;
        }
        let (entries, replicas) = counts
            .into_iter()
            .map(|(index, replicas)| (&resource.entries()[index], replicas))
            .unzip();
        Ok(Request { resource: &resource.spec, entries, replicas })
    }

    /// Under `multiDevice: first`, leaves only the first of several devices.
    fn keep_first(&mut self) -> Option<PlanWarning> {
        let requested = self.entries.len();
        let first = self.entries[0];
        let multi_device =
            self.entries.iter().map(|entry| entry.policy.container.multi_device).max();
        if requested == 1
            || first.policy.model == DriverModel::Legacy
            || multi_device != Some(MultiDevice::First)
        {
            return None;
        }
        self.entries.truncate(1);
        self.replicas.truncate(1);
        Some(PlanWarning::OnlyFirstDevice { requested, device: first.device.id.clone() })
    }

    fn replica_warnings(&self) -> impl Iterator<Item = PlanWarning> {
        let repeated =
            self.entries.iter().zip(&self.replicas).filter(|(_, replicas)| **replicas > 1);
        repeated.map(|(entry, replicas)| PlanWarning::ReplicasOfSameDevice {
            replicas: *replicas,
            device: entry.device.id.clone(),
        })
    }

    fn contents(
        &self,
        host: &HostFacts,
        disk: Disk<'_>,
        warnings: &mut Vec<PlanWarning>,
    ) -> Result<ContainerContents, PlanError> {
        let first = self.entries[0];
        let legacy = first.policy.model == DriverModel::Legacy;
        let devices: Vec<_> = self.entries.iter().map(|entry| entry.device.clone()).collect();
        let mut envs = BTreeMap::new();
        if !first.policy.container.omit_environment_hints {
            environment_hints::add(&mut envs, &self.resource.name, &devices);
        }
        if legacy {
            add_legacy(&mut envs, &first.device);
        }
        let mut mounts = resolve(&self.entries, host, disk);
        if self.resource.visibility != Visibility::Off {
            let excluded: Vec<_> =
                self.entries.iter().flat_map(|e| &e.policy.container.exclude_mounts).collect();
            let omit_wow64 = self.entries.iter().any(|e| e.policy.container.omit_wow64);
            let added = launcher::add(&mut mounts, &excluded, omit_wow64, host, disk.exists);
            if let Err(problem) = added {
                if self.resource.visibility == Visibility::Required {
                    let resource = self.resource.name.clone();
                    return Err(PlanError::NoLauncher { problem, resource });
                }
                warnings.push(PlanWarning::NoLauncher(problem));
            }
        }
        Ok(ContainerContents { devices, mounts, envs })
    }
}

fn check_sharing(resource: &ResourceDevices, requested: usize) -> Result<(), PlanError> {
    let sharing = resource.spec.sharing;
    let shared = sharing.replicas.get() > 1;
    if shared && sharing.shared_requests == SharedRequests::One && requested > 1 {
        let name = resource.spec.name.clone();
        return Err(PlanError::SharedRequest { requested, resource: name });
    }
    Ok(())
}

fn grant(
    entries: &[&ListedDevice],
    host: &HostFacts,
    warnings: &mut Vec<PlanWarning>,
) -> Result<DeviceGrant, PlanError> {
    if entries[0].policy.model == DriverModel::Legacy {
        return class_of(entries).map(DeviceGrant::Class);
    }
    if let [entry] = entries {
        let device = &entry.device;
        if single_device(&entry.policy, host.build) == SingleDevice::LocationPath {
            let path = device.location_path.clone().map(DeviceGrant::Location);
            return path.ok_or_else(|| PlanError::NoLocationPath(device.id.clone()));
        }
        let class = class_of(entries)?;
        warnings.push(PlanWarning::NoLocationPathSupport(class));
        return Ok(DeviceGrant::Class(class));
    }
    if entries.iter().any(|e| e.policy.container.multi_device == MultiDevice::Reject) {
        return Err(PlanError::SeveralDevices(ids(entries)));
    }
    let class = class_of(entries)?;
    warnings.push(PlanWarning::SeveralDevices { count: entries.len(), class });
    Ok(DeviceGrant::Class(class))
}

/// The one class that contains every device. A rule's resource can have devices of
/// several driver models.
fn class_of(entries: &[&ListedDevice]) -> Result<DeviceClass, PlanError> {
    let mut classes = Vec::new();
    for entry in entries {
        let model = entry.policy.model;
        classes.push(entry.policy.device_class().ok_or_else(|| {
            let same: Vec<_> =
                entries.iter().filter(|e| e.policy.model == model).copied().collect();
            PlanError::NoDeviceClass { requested: entries.len(), model, devices: ids(&same) }
        })?);
    }
    if classes.iter().any(|class| *class != classes[0]) {
        return Err(PlanError::DifferentClasses(ids(entries)));
    }
    Ok(classes[0])
}

fn ids(entries: &[&ListedDevice]) -> Vec<PnpId> {
    entries.iter().map(|entry| entry.device.id.clone()).collect()
}

/// Adds the variables that the device plugin of 2019 (`microsoft.com/directx`) set.
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
