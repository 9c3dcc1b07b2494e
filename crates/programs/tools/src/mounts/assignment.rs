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
    Catalog, ContainerPolicy, Device, DeviceGrant, DeviceSet, DriverModel, Health, ModelPolicy,
    Moment, MountOutcome, MountPlan, NotAdvertisedReason, Offer, PlanError, PlanWarning, Policy,
    ResourceDevices, RuntimeMounts, contents, plan, visible_devices_variable,
};
use host::{HostSnapshot, ReplicaId};

use crate::mounts::selector::Selected;

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
    /// The devices of the container, one line each.
    pub(super) selected: Vec<String>,
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

/// Plans a container with the `selected` devices of `devices`. Of those that only `--all` selects,
/// it leaves out what the device plugin would not allocate.
pub(super) fn assign(
    snapshot: &HostSnapshot,
    devices: &[Device],
    selected: &BTreeMap<usize, Selected>,
    runtime_mounts: RuntimeMounts,
) -> Result<Assignment, Failure> {
    let policy = policy(runtime_mounts)?;
    let wddm = policy.models.iter().find(|model| model.model == DriverModel::Wddm);
    let wddm = Arc::new(wddm.expect("the default policy has it").clone());
    let mut offer = Catalog::new(policy).offer(snapshot);
    let named = selected.iter().filter(|(_, how)| **how == Selected::ByName);
    let named: Vec<&Device> = named.map(|(&index, _)| &devices[index]).collect();
    let warnings = add_unsupported(&mut offer, &named, &wddm);
    // The order decides which of two files with the same name is mounted.
    offer.resources[0]
        .devices
        .sort_by_key(|(device, _)| devices.iter().position(|other| other.id == device.id));
    let mut assignment = Assignment { warnings, ..Assignment::default() };
    let mut slots: Vec<String> = Vec::new();
    for (&index, &how) in selected {
        let device = &devices[index];
        let name = &device.description;
        let not_advertised = offer.not_advertised.iter().find(|other| other.luid == device.luid);
        let (problem, reason, left_out) = match (not_advertised, device.health) {
            (Some(adapter), _) => {
                let advice = match (can_be_named(&adapter.reason), &device.location_path) {
                    (true, Some(_)) => format!("; `--index {index}` selects it"),
                    (true, None) => "; Windows reports no location path for it".to_owned(),
                    (false, _) => String::new(),
                };
                let reason = reason_text(&adapter.reason) + &advice;
                ("cannot be assigned to a container", reason, &mut assignment.not_advertised)
            }
            (None, Health::Unhealthy(reason)) => {
                ("is unhealthy", reason.to_string(), &mut assignment.warnings)
            }
            (None, Health::Healthy) => {
                slots.push(ReplicaId { device: device.id.clone(), number: 0 }.to_string());
                assignment.selected.push(selected_line(index, device));
                continue;
            }
        };
        if how == Selected::ByName {
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

/// Adds the devices that the device plugin does not advertise although they can be named, and returns
/// a warning for each. A user who names a device may want an old GPU or a virtual display.
fn add_unsupported(offer: &mut Offer, named: &[&Device], policy: &Arc<ModelPolicy>) -> Vec<String> {
    let mut warnings = Vec::new();
    for device in named {
        let adapters = &mut offer.not_advertised;
        let Some(found) = adapters.iter().position(|other| other.luid == device.luid) else {
            continue;
        };
        if can_be_named(&adapters[found].reason) && device.location_path.is_some() {
            let reason = reason_text(&adapters.remove(found).reason);
            offer.resources[0].devices.push((Arc::new((*device).clone()), policy.clone()));
            warnings.push(format!(
                "the device plugin does not advertise {} (LUID {}): {reason}",
                device.description, device.luid
            ));
        }
    }
    warnings
}

/// Whether a user can select a device by its name that the device plugin does not advertise for
/// this reason.
fn can_be_named(reason: &NotAdvertisedReason) -> bool {
    matches!(reason, NotAdvertisedReason::NoModel { .. } | NotAdvertisedReason::BasicAdapter)
}

/// The reason in the words of this program, which has no driver models and no rules.
fn reason_text(reason: &NotAdvertisedReason) -> String {
    match reason {
        NotAdvertisedReason::NoModel { supported, .. } => format!("adapter supports {supported}"),
        NotAdvertisedReason::BasicAdapter => {
            "adapter is one of Microsoft's basic adapters, not a GPU".to_owned()
        }
        other => other.to_string(),
    }
}

fn selected_line(index: usize, device: &Device) -> String {
    let path = device.location_path.as_ref().map_or("none", |path| path.as_str());
    format!(
        "selected device {index}: {} (LUID {}, location path {path})",
        device.description, device.luid
    )
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
        model.include_integrated = true;
        model.include_detachable = true;
        model.container = Arc::clone(&container);
    }
    Ok(policy)
}
