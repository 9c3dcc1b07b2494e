//! Explains a plan: which device and why, which files and why not.

use device_plugin::testing::ContainerView;
use std::collections::HashMap;

use devices::{
    DXG_CDI_DEVICE, DXG_DEVICE, DeviceClass, DeviceGrant, DeviceSet, DriverModel, HostFacts,
    MountCandidate, MountOrigin, MountOutcome, NOT_APPLIED_HINT, NoMountsReason, Plan, Platform,
    ResourceDevices, ResourceName, Sharing,
};

use super::pod_argument::Request;
use daemon::node_devices::plan_on_this_machine;

/// Explains an admission: why these devices, which files, and what the kubelet dropped.
pub(crate) fn admission(
    requests: &[Request],
    input: &ContainerView,
    set: &DeviceSet,
) -> Vec<String> {
    let mut notes = Vec::new();
    for request in requests {
        let Some(resource) = set.resource(&request.resource) else { continue };
        let ids = input.device_ids.get(request.resource.as_str()).into_iter().flatten();
        match plan_on_this_machine(resource, ids.map(String::as_str), &set.host) {
            Ok(plan) => notes.extend(decisions(&plan, resource, &set.host)),
            Err(error) => {
                notes.push(format!("the plugin would refuse the allocation now: {error}"));
            }
        }
    }
    for dropped in &input.dropped {
        notes.push(format!("warning: the kubelet drops {dropped}"));
    }
    if input.device_ids.len() > 1 && set.host.platform == Platform::Windows {
        notes.push(
            "warning: the container requests devices of several resources, and the kubelet keeps \
             the device entry of only one of them; which one is undefined"
                .to_owned(),
        );
    }
    notes
}

/// Explains a refusal: which resources the node advertises instead, or how many replicas it has.
/// `allocated` has the replicas of the pods before.
pub(crate) fn refusal(
    requests: &[Request],
    set: &DeviceSet,
    allocated: &HashMap<ResourceName, u32>,
) -> Vec<String> {
    let mut notes = Vec::new();
    for Request { resource: name, count } in requests {
        let Some(resource) = set.resource(name) else {
            let names: Vec<String> =
                set.resources.iter().map(|other| other.spec.name.to_string()).collect();
            notes.push(format!("this node advertises {}, but not {name}", names.join(", ")));
            continue;
        };
        let count = *count as usize;
        let total = resource.replicas().count();
        let healthy = resource.replicas().filter(|replica| replica.health.is_healthy()).count();
        let used = allocated.get(name).map_or(0, |used| *used as usize);
        if count > total {
            notes.push(format!(
                "requests {count} of {name}, this node can never have more than {total}"
            ));
        } else if count > healthy {
            notes
                .push(format!("requests {count} of {name}, only {healthy} of {total} are healthy"));
        } else if used > 0 && count > healthy.saturating_sub(used) {
            notes.push(format!(
                "requests {count} of {name}, the pods before hold {used} of {healthy}"
            ));
        }
    }
    notes
}

/// The decisions of a plan.
fn decisions(plan: &Plan, resource: &ResourceDevices, host: &HostFacts) -> Vec<String> {
    let mut notes = vec![device_choice(plan, resource.spec.sharing), device_entry(plan)];
    notes.extend(plan.warnings.iter().map(|warning| format!("warning: {warning}")));
    notes.extend(files(plan, resource));
    if host.build.is_none() && host.platform == Platform::Windows {
        notes.push("the host's build is unknown; a build before 26100 is assumed".to_owned());
    }
    notes
}

fn device_choice(plan: &Plan, sharing: Sharing) -> String {
    let names: Vec<String> =
        plan.devices.iter().map(|d| format!("{} (LUID {})", d.description, d.luid)).collect();
    let how = match (sharing.replicas.get(), sharing.allocation) {
        (1, _) => "each device is allocated to one container".to_owned(),
        (n, devices::AllocationPolicy::Distributed) => {
            format!("up to {n} containers share a device; the least used device is allocated first")
        }
        (n, devices::AllocationPolicy::Packed) => {
            format!("up to {n} containers share a device; the most used device is allocated first")
        }
    };
    format!("{}: {how}", names.join(", "))
}

fn device_entry(plan: &Plan) -> String {
    match &plan.device {
        DeviceGrant::Location(path) => format!("one device, by its location path {path}"),
        DeviceGrant::Class(DeviceClass::DISPLAY_ADAPTER) => {
            "all display adapters of the host, by their interface class".to_owned()
        }
        DeviceGrant::Class(class) => class.content(),
        DeviceGrant::Dxg => format!("every adapter of the host, through {DXG_DEVICE}"),
        DeviceGrant::Cdi => {
            format!("every adapter of the host, with libraries, by the CDI device {DXG_CDI_DEVICE}")
        }
    }
}

fn files(plan: &Plan, resource: &ResourceDevices) -> Vec<String> {
    let mut notes = Vec::new();
    if matches!(plan.device, DeviceGrant::Dxg | DeviceGrant::Cdi) {
        for (_, why) in plan.mounts.devices_without_mounts.iter().take(1) {
            notes.push(format!("no folder with libraries is mounted: {why}"));
        }
        return notes;
    }
    let is_launcher = |file: &&MountCandidate| file.origin == MountOrigin::Launcher;
    if plan.mounts.mounted().any(|file| is_launcher(&file)) {
        notes.push(
            "directx-visible is mounted; started with it, a program sees only these devices"
                .to_owned(),
        );
    }
    let model = resource.entries().first().map(|entry| entry.policy.model);
    if model == Some(DriverModel::Legacy) {
        notes.push("the legacy driver model mounts no runtime files".to_owned());
    }
    for (luid, why) in &plan.mounts.devices_without_mounts {
        notes.push(format!("no runtime files of the device with LUID {luid} are mounted: {why}"));
    }
    let mounted = plan.mounts.mounted().filter(|file| !is_launcher(file)).count();
    if mounted > 0 {
        notes.push(format!("{mounted} runtime files exist and are mounted read-only"));
    }
    for file in &plan.mounts.files {
        let path = &file.file.host_path;
        let origin = file.file.origin;
        let why = match &file.outcome {
            MountOutcome::Mounted => continue,
            MountOutcome::Missing => ", does not exist".to_owned(),
            MountOutcome::Excluded => ", is in excludeMounts".to_owned(),
            MountOutcome::DestinationTaken { by } => {
                format!(": {} is mounted at {}", by.host_path, by.container_path)
            }
            MountOutcome::NotApplied => {
                let reason = NoMountsReason::MountedByWindows;
                notes.push(format!("warning: additional mount not applied: {path}: {reason}"));
                notes.push(format!("hint: {NOT_APPLIED_HINT}"));
                continue;
            }
        };
        notes.push(format!("not mounted: {path}, named by {origin}{why}"));
    }
    notes
}
