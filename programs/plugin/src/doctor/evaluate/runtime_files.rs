//! The runtime files that containers get with each device, planned as for `Allocate`.

use devices::{
    Device, HostFacts, ListedDevice, MountOrigin, MountOutcome, NoMountsReason, Platform,
    ResourceDevices, SlotId, contents,
};

use super::linux;
use crate::doctor::finding::{Finding, Subject};

/// How many names one line lists.
const NAMES_SHOWN: usize = 5;

/// The files of one device of a resource. An unhealthy device cannot be allocated.
pub(super) fn runtime_files(
    resource: &ResourceDevices,
    entry: &ListedDevice,
    host: &HostFacts,
) -> Vec<Finding> {
    let device = &entry.device;
    let slot = SlotId { device: device.id.clone(), replica: 0 }.to_string();
    // The snapshot lists the files that exist.
    let Ok(contents) = contents(resource, [slot.as_str()], host, &|_| true) else {
        return Vec::new();
    };
    let files = contents.mounts.files;
    let with = |outcome: MountOutcome| files.iter().filter(move |file| file.outcome == outcome);
    let mounted = with(MountOutcome::Mounted).count();
    let missing: Vec<&str> = with(MountOutcome::Missing)
        .filter(|file| file.file.origin != MountOrigin::Default)
        .map(|file| file.file.host_path.as_str())
        .collect();
    let planned = contents.mounts.devices_without_mounts.first().map(|(_, reason)| *reason);
    let unknown = device.driver_store.is_err().then_some(NoMountsReason::NoDriverStore);
    let check = match planned.or(unknown) {
        Some(reason @ NoMountsReason::InsideContainer) => Subject::RUNTIME_FILES.warning(
            reason.to_string(),
            "run doctor and the plugin on the host or in a HostProcess container",
        ),
        Some(reason @ (NoMountsReason::NoDriverStore | NoMountsReason::DriverStoreOutside)) => {
            let why = device.rejected_store().map_or(reason.to_string(), ToString::to_string);
            let what = format!("{why}, so containers get only DirectX, no runtime files");
            Subject::RUNTIME_FILES.warning(what, reinstall(host))
        }
        Some(reason) => Subject::RUNTIME_FILES.ok(format!("none is mounted: {reason}")),
        None if !missing.is_empty() => Subject::RUNTIME_FILES.warning(
            format!(
                "{} of {} missing: {}",
                missing.len(),
                mounted + missing.len(),
                first_names(&missing)
            ),
            "reinstall the driver; until then containers get only the other files, and what needs \
             the missing ones (CUDA, OpenCL, Vulkan, video) fails there",
        ),
        None if mounted == 0 => {
            Subject::RUNTIME_FILES.ok("the driver names none; containers get only DirectX")
        }
        None => Subject::RUNTIME_FILES.ok(format!("mounted in containers: {mounted}")),
    };
    let not_applied = files.iter().find_map(|file| match file.outcome {
        MountOutcome::NotApplied(reason) => Some(reason),
        _ => None,
    });
    let not_applied = not_applied.map(|reason| {
        let hint = reason.additional_mounts_hint().unwrap_or("remove the additional mounts");
        Subject::RUNTIME_FILES.warning(format!("additional mounts are not applied: {reason}"), hint)
    });
    let checks = [Some(check), not_applied, rejected(device)].into_iter().flatten();
    checks.map(|check| check.of(format!("{} ({})", device.description, device.id))).collect()
}

fn reinstall(host: &HostFacts) -> &'static str {
    match host.platform {
        Platform::Windows => "reinstall the driver with the vendor's installer",
        Platform::LinuxDxg => linux::MOUNT,
    }
}

/// Registry values that name no usable file.
fn rejected(device: &Device) -> Option<Finding> {
    let rejected = device.runtime_files.rejected.iter();
    let values: Vec<String> =
        rejected.map(|value| format!("{} `{}` ({})", value.key, value.value, value.why)).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let count = match values.len() {
        0 => return None,
        1 => "1 registry value is ignored".to_owned(),
        n => format!("{n} registry values are ignored"),
    };
    Some(Subject::RUNTIME_FILES.warning(
        format!("{count}: {}", first_names(&values)),
        "report the fault to the vendor of the driver package, and mount what is missing with \
         additionalMounts",
    ))
}

/// The first few names, and how many more there are.
fn first_names(names: &[&str]) -> String {
    match names.len().checked_sub(NAMES_SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..NAMES_SHOWN].join(", ")),
    }
}
