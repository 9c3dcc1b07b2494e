//! The runtime files that containers get with each device, planned as for `Allocate`.

use command_line::device_summary::mounted_files;
use devices::{
    Device, FileDecision, LeftOut, ListedDevice, MountCandidate, MountOrigin, MountOutcome,
    MountPlan, NOT_APPLIED_HINT, NoMountsReason, ResourceDevices, RuntimeMounts, contents,
};
use host::{HostSnapshot, ReplicaId};

use crate::facts::NodeFacts;
use crate::finding::{Finding, FindingId, Subject, number_of};

/// The files of one device of a resource. An unhealthy device cannot be allocated.
pub(super) fn runtime_files(
    resource: &ResourceDevices,
    entry: &ListedDevice,
    facts: &NodeFacts,
) -> Vec<Finding> {
    let HostSnapshot { host, .. } = &facts.snapshot;
    let device = &entry.device;
    let slot = ReplicaId { device: device.id.clone(), number: 0 }.to_string();
    // The snapshot lists the files of driver store folders.
    let Ok(contents) = contents(resource, [slot.as_str()], host, &|_| true) else {
        return Vec::new();
    };
    let plan = &contents.mounts;
    let mut checks = vec![mounted(entry, plan)];
    checks.extend(not_applied(plan));
    if considers_driver_files(entry, plan) {
        checks.extend(rejected(device));
    }
    let name = format!("{} ({})", device.description, device.id);
    checks.into_iter().map(|check| check.of(name.as_str())).collect()
}

/// Why the plugin mounts none of the device's files.
fn none_mounted(plan: &MountPlan) -> Option<NoMountsReason> {
    plan.devices_without_mounts.first().map(|(_, reason)| *reason)
}

fn mounted(entry: &ListedDevice, plan: &MountPlan) -> Finding {
    let device = &*entry.device;
    if let Some(missing) = missing(entry, plan) {
        return missing;
    }
    let Some(reason) = none_mounted(plan) else {
        let files = number_of(plan.mounted().count(), "file");
        let sources = mounted_files(plan);
        let rest = left_out(entry, plan);
        let what = format!("{files} mounted in containers ({sources}){rest}");
        return Subject::RuntimeFiles.ok(what);
    };
    match reason {
        NoMountsReason::InsideContainer => FindingId::InsideContainer.warning(
            reason.to_string(),
            "run doctor and the plugin on the host or in a HostProcess container",
        ),
        NoMountsReason::NoDriverStore | NoMountsReason::DriverStoreOutside => {
            let why = device.rejected_store().map_or(reason.to_string(), ToString::to_string);
            let what = format!("{why}, so no runtime files are mounted");
            let hint = "reinstall the driver with the vendor's installer";
            FindingId::NoDriverStore.warning(what, hint)
        }
        NoMountsReason::NoneNamed => {
            let what = format!("none is mounted: {reason}; containers get only DirectX");
            Subject::RuntimeFiles.ok(what)
        }
        NoMountsReason::Legacy
        | NoMountsReason::Never
        | NoMountsReason::NoAdditionalMounts(_)
        | NoMountsReason::LeftOut(_) => {
            Subject::RuntimeFiles.ok(format!("none is mounted: {reason}"))
        }
        NoMountsReason::MountedByWindows => {
            let defaults = defaults_not_applied(plan);
            Subject::RuntimeFiles.ok(format!("none is mounted: {reason}{defaults}"))
        }
    }
}

/// The files that the driver or the configuration names and the folder lacks.
fn missing(entry: &ListedDevice, plan: &MountPlan) -> Option<Finding> {
    let folder = entry.device.driver_store.as_ref().map_or("", |store| store.path.as_str());
    let mut missing = Vec::new();
    let mut lacks_files_of_driver = false;
    for FileDecision { file, outcome } in &plan.files {
        let path = file.host_path.trim_start_matches(folder).trim_start_matches('\\');
        match outcome {
            MountOutcome::Missing if file.origin != MountOrigin::Default => {
                missing.push(path.to_owned());
            }
            MountOutcome::NotOneMatch(files) => missing.push(format!("{path} {files}")),
            _ => continue,
        }
        lacks_files_of_driver |= file.origin == MountOrigin::Registry;
    }
    if missing.is_empty() {
        return None;
    }
    let count = missing.len();
    let all = plan.mounted().count() + count;
    let rest = left_out(entry, plan);
    let fix = if lacks_files_of_driver {
        "reinstall the driver, or correct additionalMounts"
    } else {
        r"correct additionalMounts, with `*` for what another version of the driver changes in the name of a folder, such as B*\vulkan64.dll"
    };
    Some(FindingId::FilesMissing.warning(
        format!("{count} of {all} missing from {folder}: {}{rest}", missing.join(", ")),
        format!(
            "{fix}; until then containers get only the other files, and what needs the missing \
             ones (CUDA, OpenCL, Vulkan, video) fails there"
        ),
    ))
}

/// What else is not mounted, after what is. If only defaults are although the driver's files are
/// wanted, the driver names nothing.
fn left_out(entry: &ListedDevice, plan: &MountPlan) -> String {
    let is_named = |origin| match origin {
        MountOrigin::Registry | MountOrigin::Configuration => true,
        MountOrigin::Default | MountOrigin::Launcher => false,
    };
    let is_extra = entry.policy.container.runtime_mounts == RuntimeMounts::Extra;
    if !is_extra && !plan.files.iter().any(|file| is_named(file.file.origin)) {
        return format!("; {}", NoMountsReason::NoneNamed);
    }
    let left_out = LeftOut { missing: 0, not_one_match: 0, ..LeftOut::of(&plan.files) };
    if left_out == LeftOut::default() {
        return String::new();
    }
    format!("; not mounted: {left_out}")
}

/// The files that an origin names and that are dropped with the driver's files.
fn not_applied_of(plan: &MountPlan, origin: MountOrigin) -> impl Iterator<Item = &MountCandidate> {
    let dropped = plan.files.iter().filter(|file| file.outcome == MountOutcome::NotApplied);
    dropped.map(|file| &file.file).filter(move |file| file.origin == origin)
}

/// The plugin's defaults that Windows does not mount either. They are optional, so this is no
/// fault.
fn defaults_not_applied(plan: &MountPlan) -> String {
    let name = |file: &MountCandidate| file.container_path.rsplit('\\').next().map(str::to_owned);
    let mut names: Vec<String> =
        not_applied_of(plan, MountOrigin::Default).filter_map(name).collect();
    // The same name is in System32 and in SysWOW64.
    names.dedup();
    if names.is_empty() {
        return String::new();
    }
    format!(", but not {} (`runtimeMounts: extra` does)", names.join(", "))
}

fn not_applied(plan: &MountPlan) -> Option<Finding> {
    let is_dropped = not_applied_of(plan, MountOrigin::Configuration).next().is_some();
    let reason = NoMountsReason::MountedByWindows;
    let what = format!("additional mounts are not applied: {reason}");
    is_dropped.then(|| FindingId::MountsNotApplied.warning(what, NOT_APPLIED_HINT))
}

/// Whether the plugin looks at the files that the driver names.
fn considers_driver_files(entry: &ListedDevice, plan: &MountPlan) -> bool {
    match none_mounted(plan) {
        None | Some(NoMountsReason::NoneNamed | NoMountsReason::LeftOut(_)) => {
            entry.policy.container.runtime_mounts != RuntimeMounts::Extra
        }
        Some(
            NoMountsReason::Legacy
            | NoMountsReason::Never
            | NoMountsReason::NoAdditionalMounts(_)
            | NoMountsReason::MountedByWindows
            | NoMountsReason::NoDriverStore
            | NoMountsReason::DriverStoreOutside
            | NoMountsReason::InsideContainer,
        ) => false,
    }
}

/// Registry values that name no usable file.
fn rejected(device: &Device) -> Option<Finding> {
    let rejected = device.runtime_files.rejected.iter();
    let values: Vec<String> =
        rejected.map(|value| format!("{} `{}` ({})", value.key, value.value, value.why)).collect();
    if values.is_empty() {
        return None;
    }
    Some(FindingId::RegistryValuesIgnored.warning(
        format!("registry values are ignored: {}", values.join(", ")),
        "report the fault to the vendor of the driver package, and mount what is missing with \
         additionalMounts",
    ))
}
