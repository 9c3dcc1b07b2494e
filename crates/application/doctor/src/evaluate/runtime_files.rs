//! The runtime files that containers get with each device, planned as for `Allocate`.

use command_line::device_summary::mounted_files;
use devices::{
    Device, HostFacts, ListedDevice, MountOrigin, MountOutcome, MountPlan, NOT_APPLIED_HINT,
    NoMountsReason, Platform, ReplicaId, ResourceDevices, contents,
};

use super::hardware::UPDATE_OR_MOUNT;
use crate::finding::{Finding, Subject, number_of};

/// The files of one device of a resource. An unhealthy device cannot be allocated.
pub(super) fn runtime_files(
    resource: &ResourceDevices,
    entry: &ListedDevice,
    host: &HostFacts,
) -> Vec<Finding> {
    let device = &entry.device;
    let slot = ReplicaId { device: device.id.clone(), number: 0 }.to_string();
    // The snapshot lists the files that exist.
    let Ok(contents) = contents(resource, [slot.as_str()], host, &|_| true) else {
        return Vec::new();
    };
    let checks = [
        Some(mounted(device, &contents.mounts, host)),
        not_applied(&contents.mounts),
        rejected(device),
    ];
    let name = format!("{} ({})", device.description, device.id);
    checks.into_iter().flatten().map(|check| check.of(name.as_str())).collect()
}

fn mounted(device: &Device, plan: &MountPlan, host: &HostFacts) -> Finding {
    let planned = plan.devices_without_mounts.first().map(|(_, reason)| *reason);
    let unknown = device.driver_store.is_err().then_some(NoMountsReason::NoDriverStore);
    match planned.or(unknown) {
        None => {}
        Some(reason @ NoMountsReason::InsideContainer) => {
            return Subject::RUNTIME_FILES.warning(
                reason.to_string(),
                "run doctor and the plugin on the host or in a HostProcess container",
            );
        }
        Some(reason @ (NoMountsReason::NoDriverStore | NoMountsReason::DriverStoreOutside)) => {
            let why = device.rejected_store().map_or(reason.to_string(), ToString::to_string);
            let what = format!("{why}, so containers get only DirectX, no runtime files");
            let hint = match host.platform {
                Platform::Windows => "reinstall the driver with the vendor's installer",
                Platform::LinuxDxg => UPDATE_OR_MOUNT,
            };
            return Subject::RUNTIME_FILES.warning(what, hint);
        }
        Some(reason) => return Subject::RUNTIME_FILES.ok(format!("none is mounted: {reason}")),
    }
    let folder = device.driver_store.as_ref().map_or("", |store| store.path.as_str());
    let missing: Vec<&str> = plan
        .files
        .iter()
        .filter(|file| file.outcome == MountOutcome::Missing)
        .filter(|file| file.file.origin != MountOrigin::Default)
        .map(|file| file.file.host_path.trim_start_matches(folder).trim_start_matches('\\'))
        .collect();
    let mounted = plan.mounted().count();
    if !missing.is_empty() {
        let count = missing.len();
        let all = mounted + missing.len();
        return Subject::RUNTIME_FILES.warning(
            format!("{count} of {all} missing from {folder}: {}", missing.join(", ")),
            "reinstall the driver, or correct additionalMounts; until then containers get only the \
             other files, and what needs the missing ones (CUDA, OpenCL, Vulkan, video) fails there",
        );
    }
    Subject::RUNTIME_FILES.ok(match mounted {
        0 => "the driver names none; containers get only DirectX".to_owned(),
        count if host.platform == Platform::LinuxDxg => {
            format!("{} mounted in containers", number_of(count, "folder"))
        }
        count => {
            let files = number_of(count, "file");
            format!("{files} mounted in containers ({})", mounted_files(plan))
        }
    })
}

fn not_applied(plan: &MountPlan) -> Option<Finding> {
    let is_dropped = plan.files.iter().any(|file| file.outcome == MountOutcome::NotApplied);
    let reason = NoMountsReason::MountedByWindows;
    let what = format!("additional mounts are not applied: {reason}");
    is_dropped.then(|| Subject::RUNTIME_FILES.warning(what, NOT_APPLIED_HINT))
}

/// Registry values that name no usable file.
fn rejected(device: &Device) -> Option<Finding> {
    let rejected = device.runtime_files.rejected.iter();
    let values: Vec<String> =
        rejected.map(|value| format!("{} `{}` ({})", value.key, value.value, value.why)).collect();
    if values.is_empty() {
        return None;
    }
    Some(Subject::RUNTIME_FILES.warning(
        format!("registry values are ignored: {}", values.join(", ")),
        "report the fault to the vendor of the driver package, and mount what is missing with \
         additionalMounts",
    ))
}
