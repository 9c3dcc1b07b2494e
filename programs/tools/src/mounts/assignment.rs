//! What a container gets for the selected devices. The decisions are those of the device
//! plugin: this module calls [`devices::plan`] once per device and once for all devices.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use devices::{
    AllocationPolicy, Catalog, ContainerPolicy, Device, DeviceGrant, DeviceSet, DriverModel,
    Health, HostSnapshot, ModelPolicy, Moment, MountOutcome, MountPlan, Offer, PlanError,
    PlanWarning, Policy, ResourceDevices, ResourceNameError, RuntimeMounts, SharedRequests,
    Sharing, SkipReason, SlotId, UnhealthyReason, contents, plan,
};
use node::cli::frontends::Container;

use super::selector::DeviceSelector;

/// What a container gets, independent of the front end.
#[derive(Debug, Default)]
pub(super) struct Assignment {
    /// Each device by location path, or the class once.
    pub(super) devices: Vec<DeviceGrant>,
    /// The files of all devices.
    pub(super) mounts: MountPlan,
    /// Environment variables that name the container's devices.
    pub(super) envs: BTreeMap<String, String>,
    /// What the user should know.
    pub(super) warnings: Vec<String>,
    /// Devices that the device plugin does not advertise, with reasons.
    pub(super) skipped: Vec<String>,
}

impl Assignment {
    /// What the front end gives the container, with the variables for `hints`.
    pub(super) fn container(&self, hints: bool) -> Container<'_> {
        let envs = hints.then_some(&self.envs);
        Container { devices: &self.devices, mounts: &self.mounts, envs }
    }
}

/// Why the selected devices cannot be assigned.
#[derive(Debug, thiserror::Error)]
pub(super) enum AssignmentError {
    /// The device plugin would not advertise the device either.
    #[error("device {0} ({1}) cannot be assigned to a container: {2}")]
    NotAdvertised(usize, String, SkipReason),
    /// The device plugin would advertise the device as unhealthy.
    #[error("device {0} ({1}) is unhealthy: {2}")]
    Unhealthy(usize, String, UnhealthyReason),
    /// None of the host's devices can be assigned; the reasons, one per device.
    #[error("no device of this host can be assigned to a container")]
    NoDevice(Vec<String>),
    /// The device plugin would refuse the allocation.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The name of the resource for all devices is invalid.
    #[error(transparent)]
    Name(#[from] ResourceNameError),
}

/// Plans a container with the devices at the indexes `selected` in `devices`.
pub(super) fn assign(
    snapshot: &HostSnapshot,
    devices: &[Device],
    selector: &DeviceSelector,
    selected: &[usize],
    runtime_mounts: RuntimeMounts,
) -> Result<Assignment, AssignmentError> {
    let offer = Catalog::new(policy(runtime_mounts)?).offer(snapshot);
    let mut assignment = Assignment::default();
    let mut slots: Vec<String> = Vec::new();
    for index in selected {
        let device = &devices[*index];
        match slot_of(device, *index, &offer) {
            Ok(slot) => slots.push(slot),
            // `--all` means every device that can be assigned.
            Err(AssignmentError::NotAdvertised(_, _, reason)) if selector.all => {
                assignment.skipped.push(skipped(device, &reason));
            }
            Err(AssignmentError::Unhealthy(_, _, reason)) if selector.all => {
                assignment.warnings.push(skipped(device, &reason));
            }
            Err(error) => return Err(error),
        }
    }
    let set = DeviceSet::next(None, offer, Moment::default());
    let Some(resource) = set.resources.first().filter(|_| !slots.is_empty()) else {
        return Err(AssignmentError::NoDevice([assignment.skipped, assignment.warnings].concat()));
    };
    fill(&mut assignment, resource, snapshot, &slots)?;
    Ok(assignment)
}

/// The single slot of a device, if the device can be assigned.
fn slot_of(device: &Device, index: usize, offer: &Offer) -> Result<String, AssignmentError> {
    let name = || device.description.clone();
    if let Some(skipped) = offer.skipped.iter().find(|skipped| skipped.luid == device.luid) {
        return Err(AssignmentError::NotAdvertised(index, name(), skipped.reason.clone()));
    }
    match device.health {
        Health::Unhealthy(reason) => Err(AssignmentError::Unhealthy(index, name(), reason)),
        Health::Healthy => Ok(SlotId { device: device.id.clone(), replica: 0 }.to_string()),
    }
}

fn skipped(device: &Device, reason: &dyn std::fmt::Display) -> String {
    format!("skipping {} (LUID {}): {reason}", device.description, device.luid)
}

/// Without the kubelet a container can have several device entries, so each device is
/// planned separately. The files of all devices share their destinations, so they are
/// planned together.
fn fill(
    assignment: &mut Assignment,
    resource: &ResourceDevices,
    snapshot: &HostSnapshot,
    slots: &[String],
) -> Result<(), PlanError> {
    let exists = |path: &str| std::path::Path::new(path).is_file();
    for slot in slots {
        // Only the device entry is used, so the disk is not checked.
        let one = plan(resource, [slot.as_str()], &snapshot.host, &|_| false)?;
        if !assignment.devices.contains(&one.device) {
            assignment.devices.push(one.device);
            assignment.warnings.extend(one.warnings.iter().map(PlanWarning::to_string));
        }
    }
    let all = contents(resource, slots.iter().map(String::as_str), &snapshot.host, &exists)?;
    assignment.warnings.extend(conflicts(&all.mounts));
    assignment.mounts = all.mounts;
    assignment.envs = all.envs;
    Ok(())
}

fn conflicts(mounts: &MountPlan) -> impl Iterator<Item = String> {
    mounts.files.iter().filter_map(|file| match &file.outcome {
        MountOutcome::DestinationTaken { by } => Some(format!(
            "not mounting {}: {} is already mounted at {}",
            file.file.host_path, by.host_path, by.container_path
        )),
        _ => None,
    })
}

/// One resource with every device that the device plugin can advertise.
fn policy(runtime_mounts: RuntimeMounts) -> Result<Policy, ResourceNameError> {
    let container = Arc::new(ContainerPolicy { runtime_mounts, ..ContainerPolicy::default() });
    let resource: devices::ResourceName = "local.invalid/devices".parse()?;
    let model = |model| ModelPolicy {
        model,
        resource: resource.clone(),
        sharing: Sharing {
            replicas: NonZeroU32::MIN,
            allocation: AllocationPolicy::default(),
            shared_requests: SharedRequests::default(),
        },
        named_by_user: true,
        include_integrated: Some(true),
        include_detachable: true,
        match_name: None,
        rules: Arc::new([]),
        container: container.clone(),
        publish_numa: false,
        removal_grace: Duration::ZERO,
    };
    Ok(Policy { models: vec![model(DriverModel::Wddm), model(DriverModel::Mcdm)] })
}
