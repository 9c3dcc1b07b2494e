//! What a container gets for the selected devices. The decisions are those of the device
//! plugin: this module calls [`devices::plan`] once per device and once for all devices.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use anyhow::anyhow;
use command_line::Failure;
use command_line::frontends::Container;
use config::{EmptyEnvironment, Flags};
use devices::{
    Catalog, ContainerPolicy, Device, DeviceGrant, DeviceSet, Health, HostSnapshot, Moment,
    MountOutcome, MountPlan, PlanError, PlanWarning, Policy, ReplicaId, ResourceDevices,
    RuntimeMounts, contents, plan, visible_devices_variable,
};

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
    pub(super) not_advertised: Vec<String>,
}

impl Assignment {
    /// What the front end gives the container, with the variables for `hints`.
    pub(super) fn container(&self, hints: bool) -> Container<'_> {
        let envs = hints.then_some(&self.envs);
        Container { devices: &self.devices, mounts: &self.mounts, envs }
    }
}

/// Plans a container with the devices at the indexes `selected` in `devices`. With `all`, devices
/// that cannot be assigned are left out.
pub(super) fn assign(
    snapshot: &HostSnapshot,
    devices: &[Device],
    all: bool,
    selected: &[usize],
    runtime_mounts: RuntimeMounts,
) -> Result<Assignment, Failure> {
    let offer = Catalog::new(policy(runtime_mounts)?).offer(snapshot);
    let mut assignment = Assignment::default();
    let mut slots: Vec<String> = Vec::new();
    for &index in selected {
        let device = &devices[index];
        let not_advertised = offer.not_advertised.iter().find(|other| other.luid == device.luid);
        let (problem, reason, left_out) = match (not_advertised, device.health) {
            (Some(adapter), _) => {
                let problem = "cannot be assigned to a container";
                (problem, adapter.reason.to_string(), &mut assignment.not_advertised)
            }
            (None, Health::Unhealthy(reason)) => {
                ("is unhealthy", reason.to_string(), &mut assignment.warnings)
            }
            (None, Health::Healthy) => {
                slots.push(ReplicaId { device: device.id.clone(), number: 0 }.to_string());
                continue;
            }
        };
        let name = &device.description;
        if !all {
            let error = anyhow!("device {index} ({name}) {problem}: {reason}");
            return Err(Failure::runtime(error));
        }
        left_out.push(format!("skipping {name} (LUID {}): {reason}", device.luid));
    }
    let set = DeviceSet::next(None, offer, Moment::default());
    let Some(resource) = set.resources.first().filter(|_| !slots.is_empty()) else {
        let error = anyhow!("no device of this host can be assigned to a container");
        let reasons = [assignment.not_advertised, assignment.warnings].concat();
        return Err(Failure::runtime(error).hint(reasons.join("\n  ")));
    };
    fill(&mut assignment, resource, snapshot, &slots).map_err(Failure::runtime)?;
    Ok(assignment)
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
    for slot in slots {
        // Only the device entry is used, so the disk is not checked.
        let one = plan(resource, [slot.as_str()], &snapshot.host, &|_| false)?;
        if !assignment.devices.contains(&one.device) {
            assignment.devices.push(one.device);
            assignment.warnings.extend(one.warnings.iter().map(PlanWarning::to_string));
        }
    }
    let all = contents(resource, slots.iter().map(String::as_str), &snapshot.host, &|path| {
        std::path::Path::new(path).is_file()
    })?;
    assignment.warnings.extend(conflicts(&all.mounts));
    assignment.mounts = all.mounts;
    // This resource exists only here, so its name would say nothing.
    assignment.envs = all.envs;
    assignment.envs.remove(&visible_devices_variable(&resource.spec.name));
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

/// The default policy of the device plugin, with one resource for every device that it can
/// advertise.
fn policy(runtime_mounts: RuntimeMounts) -> Result<Policy, Failure> {
    let config = config::load(&Flags::default(), &EmptyEnvironment)?;
    let container = Arc::new(ContainerPolicy { runtime_mounts, ..ContainerPolicy::default() });
    let mut policy = config.policy;
    for model in &mut policy.models {
        model.resource = "local.invalid/devices".parse().expect("it has a domain and a name");
        model.sharing.replicas = NonZeroU32::MIN;
        (model.include_integrated, model.include_detachable) = (true, true);
        model.container = Arc::clone(&container);
    }
    Ok(policy)
}
