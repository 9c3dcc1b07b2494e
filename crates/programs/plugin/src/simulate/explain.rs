//! Explains a plan: which device and why, which files and why not.

use std::collections::HashMap;
use std::fmt;

use command_line::device_summary::mounted_files;
use command_line::disk;
use config::closest;
use devices::{
    AllocationPolicy, DeviceClass, DeviceGrant, DeviceSet, MountCandidate, MountOrigin,
    MountOutcome, NOT_APPLIED_HINT, NoMountsReason, NotAdvertised, Plan, ResourceDevices,
    ResourceName, Sharing,
};
use host::HostFacts;
use kubelet_double::ContainerView;

use crate::simulate::pod_argument::Request;

/// What a container gets, and why.
#[derive(Default)]
pub(crate) struct Explanation {
    pub(crate) notes: Vec<Note>,
    /// The devices of each request, as the table names them.
    pub(crate) devices: Vec<String>,
    /// The files of each request, and who names them.
    pub(crate) files: Vec<String>,
}

/// A line about a pod.
pub(crate) enum Note {
    /// Which devices were allocated, and how containers share them.
    Devices { names: String, sharing: Sharing },
    /// What was decided, and why.
    Decision(String),
    /// A decision that is not as usual, so that the table shows it.
    Exception(String),
    /// A request for a resource that the node does not advertise.
    UnknownResource(String),
    /// A request that cannot be met, and why.
    Refused { request: String, why: String },
    /// What may be wrong.
    Warning(String),
    /// What to do about the warning before.
    Hint(String),
    /// A file that is not mounted, and why. A container can have many.
    NotMounted(String),
    /// A file that is not mounted as intended: the configuration or the host excludes it, or it is
    /// one of the plugin's defaults that this driver does not have or that is left out with the
    /// driver's files.
    LeftOut(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Devices { names, sharing } => write!(f, "{names}: {}", how_shared(*sharing)),
            Note::Decision(text) | Note::Exception(text) | Note::UnknownResource(text) => {
                f.write_str(text)
            }
            Note::Warning(text) => write!(f, "warning: {text}"),
            Note::Hint(text) => write!(f, "hint: {text}"),
            Note::Refused { request, why } => write!(f, "{request}, {why}"),
            Note::NotMounted(text) | Note::LeftOut(text) => write!(f, "not mounted: {text}"),
        }
    }
}

/// Explains an admission: why these devices, which files, and what the kubelet dropped.
pub(crate) fn admission(
    requests: &[Request],
    input: &ContainerView,
    set: &DeviceSet,
) -> Explanation {
    let mut explanation = Explanation::default();
    let notes = &mut explanation.notes;
    for request in requests {
        let Some(resource) = set.resource(&request.resource) else { continue };
        let ids = input.device_ids.get(request.resource.as_str()).into_iter().flatten();
        match devices::plan_on_disk(resource, ids.map(String::as_str), &set.host, disk()) {
            Ok(plan) => {
                notes.extend(decisions(&plan, resource, &set.host));
                explanation.devices.push(devices_in_short(&plan, set));
                explanation.files.push(mounted_files(&plan.mounts));
            }
            Err(error) => {
                notes.push(Note::Exception(format!(
                    "the plugin would refuse the allocation now: {error}"
                )));
            }
        }
    }
    for dropped in &input.dropped {
        notes.push(Note::Warning(format!("the kubelet drops {dropped}")));
    }
    if input.device_ids.len() > 1 {
        notes.push(Note::Warning(
            "the container requests devices of several resources, and the kubelet keeps the device \
             entry of only one of them; which one is undefined"
                .to_owned(),
        ));
    }
    explanation
}

/// Explains a refusal: which resources the node advertises instead, or how many replicas it has.
/// `allocated` has the replicas of the pods before.
pub(crate) fn refusal(
    requests: &[Request],
    set: &DeviceSet,
    allocated: &HashMap<ResourceName, u32>,
) -> Explanation {
    let notes = requests.iter().filter_map(|request| refused_request(request, set, allocated));
    Explanation { notes: notes.collect(), ..Explanation::default() }
}

/// An adapter that the configuration excludes, with what advertises it.
fn excluded(adapter: &NotAdvertised, host: &HostFacts) -> Option<String> {
    let fix = adapter.reason.configuration_fix(host)?;
    let NotAdvertised { luid, description, reason, .. } = adapter;
    Some(format!("; {description} (LUID {luid}): {reason}; to advertise it, {fix}"))
}

/// Why this request cannot be met; `None` if it can.
fn refused_request(
    Request { resource: name, count }: &Request,
    set: &DeviceSet,
    allocated: &HashMap<ResourceName, u32>,
) -> Option<Note> {
    let Some(resource) = set.resource(name) else {
        let others: Vec<&str> =
            set.resources.iter().map(|other| other.spec.name.as_str()).collect();
        let is_same = |other: &&&str| other.eq_ignore_ascii_case(name.as_str());
        let meant = match others.iter().find(is_same) {
            Some(other) => format!("; names of resources differ by case: write {other}"),
            None => closest(name.as_str(), others.iter().copied())
                .map(|other| format!("; did you mean {other}?"))
                .unwrap_or_default(),
        };
        let text = format!("this node advertises {}, but not {name}{meant}", others.join(", "));
        return Some(Note::UnknownResource(text));
    };
    let wanted = *count as usize;
    let total = resource.replicas().count();
    let healthy = resource.replicas().filter(|replica| replica.health.is_healthy()).count();
    let used = allocated.get(name).map_or(0, |used| *used as usize);
    let why = if total == 0 {
        let excluded: Vec<String> =
            set.excluded_from(name).filter_map(|adapter| excluded(adapter, &set.host)).collect();
        format!("this node has none{}", excluded.concat())
    } else if wanted > total {
        format!("this node can never have more than {total}")
    } else if wanted > healthy {
        format!("only {healthy} of {total} are healthy")
    } else if used > 0 && wanted > healthy.saturating_sub(used) {
        format!("the pods before hold {used} of {healthy}")
    } else {
        return None;
    };
    Some(Note::Refused { request: format!("requests {count} of {name}"), why })
}

fn decisions(plan: &Plan, resource: &ResourceDevices, host: &HostFacts) -> Vec<Note> {
    let mut notes =
        vec![device_choice(plan, resource.spec.sharing), Note::Decision(device_entry(plan))];
    notes.extend(plan.warnings.iter().map(|warning| Note::Warning(warning.to_string())));
    notes.extend(files(plan));
    if host.build.is_none() {
        notes.push(Note::Decision(
            "the host's build is unknown; a build before 26100 is assumed".to_owned(),
        ));
    }
    notes
}

/// The devices that a container gets. The location path is part of a name that several devices
/// have.
fn devices_in_short(plan: &Plan, set: &DeviceSet) -> String {
    match &plan.device {
        DeviceGrant::Class(DeviceClass::DISPLAY_ADAPTER) => {
            return "all display adapters".to_owned();
        }
        DeviceGrant::Class(_) => return "all devices of a class".to_owned(),
        DeviceGrant::Location(_) => {}
    }
    let names = plan.devices.iter().map(|device| {
        let mut entries = set.entries().map(|entry| &entry.device);
        let has_twin =
            entries.any(|other| other.id != device.id && other.description == device.description);
        match &device.location_path {
            Some(path) if has_twin => format!("{}, {path}", device.description),
            _ => device.description.clone(),
        }
    });
    names.collect::<Vec<_>>().join(" and ")
}

fn device_choice(plan: &Plan, sharing: Sharing) -> Note {
    let names: Vec<String> =
        plan.devices.iter().map(|d| format!("{} (LUID {})", d.description, d.luid)).collect();
    Note::Devices { names: names.join(", "), sharing }
}

fn how_shared(sharing: Sharing) -> String {
    match (sharing.replicas.get(), sharing.allocation) {
        (1, _) => "each device is allocated to one container".to_owned(),
        (n, AllocationPolicy::Distributed) => {
            format!("up to {n} containers share a device; the least used device is allocated first")
        }
        (n, AllocationPolicy::Packed) => {
            format!("up to {n} containers share a device; the most used device is allocated first")
        }
    }
}

fn device_entry(plan: &Plan) -> String {
    match &plan.device {
        DeviceGrant::Location(path) => format!("one device, by its location path {path}"),
        DeviceGrant::Class(DeviceClass::DISPLAY_ADAPTER) => {
            "all display adapters of the host, by their interface class".to_owned()
        }
        DeviceGrant::Class(class) => class.content(),
    }
}

fn files(plan: &Plan) -> Vec<Note> {
    let mut notes = Vec::new();
    if plan.mounts.mounted().any(is_launcher) {
        notes.push(Note::Decision(
            "directx-visible is mounted; started with it, a program sees only these devices"
                .to_owned(),
        ));
    }
    notes.extend(without_mounts(plan));
    let mounted = match plan.mounts.mounted().filter(|file| !is_launcher(file)).count() {
        0 => None,
        1 => Some("1 runtime file exists and is mounted read-only".to_owned()),
        n => Some(format!("{n} runtime files exist and are mounted read-only")),
    };
    notes.extend(mounted.map(Note::Decision));
    for file in &plan.mounts.files {
        let path = &file.file.host_path;
        let why = match (&file.outcome, file.file.origin) {
            (MountOutcome::Mounted, _) => continue,
            (MountOutcome::NotApplied, MountOrigin::Default) => {
                notes.push(Note::LeftOut(format!(
                    "{path}, named by the defaults, is left out with the driver's files; \
                     {NOT_APPLIED_HINT}"
                )));
                continue;
            }
            (MountOutcome::NotApplied, _) => {
                let reason = NoMountsReason::MountedByWindows;
                notes
                    .push(Note::Warning(format!("additional mount not applied: {path}: {reason}")));
                notes.push(Note::Hint(NOT_APPLIED_HINT.to_owned()));
                continue;
            }
            (MountOutcome::Missing, MountOrigin::Default) => {
                let why = " is optional, and this driver does not have it";
                notes.push(Note::LeftOut(format!("{path}{why}")));
                continue;
            }
            (MountOutcome::Missing, origin) => format!(", named by {origin}, does not exist"),
            (MountOutcome::NotOneMatch(files), origin) => format!(", named by {origin}, {files}"),
            (MountOutcome::Excluded, origin) => {
                let why = format!(", named by {origin}, is in excludeMounts");
                notes.push(Note::LeftOut(format!("{path}{why}")));
                continue;
            }
            (MountOutcome::Wow64Omitted, origin) => {
                notes.push(Note::LeftOut(format!(
                    "{path}, named by {origin}, is for 32-bit programs, and runtimeFilesWow64 is \
                     false"
                )));
                continue;
            }
            (MountOutcome::NoWow64, origin) => {
                notes.push(Note::LeftOut(format!(
                    "{path}, named by {origin}, is for 32-bit programs, which the host does not run"
                )));
                continue;
            }
            (MountOutcome::DestinationTaken { by }, origin) => {
                format!(", named by {origin}: {} is mounted at {}", by.host_path, by.container_path)
            }
        };
        notes.push(Note::NotMounted(format!("{path}{why}")));
    }
    notes
}

/// Why a container gets no runtime files of its devices: one note for all devices if they have the
/// same reason.
fn without_mounts(plan: &Plan) -> Vec<Note> {
    let devices = &plan.mounts.devices_without_mounts;
    if let Some((_, why)) = devices.first()
        && devices.len() == plan.devices.len()
        && devices.iter().all(|(_, other)| other == why)
    {
        return vec![Note::Exception(format!("no runtime files are mounted: {why}"))];
    }
    let notes = devices.iter().map(|(luid, why)| {
        Note::Exception(format!(
            "no runtime files of the device with LUID {luid} are mounted: {why}"
        ))
    });
    notes.collect()
}

fn is_launcher(file: &MountCandidate) -> bool {
    file.origin == MountOrigin::Launcher
}
