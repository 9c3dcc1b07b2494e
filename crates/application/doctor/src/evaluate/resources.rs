//! The configuration, and the resources under which it advertises this host's devices.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use command_line::error_chain;
use config::{Config, ConfigError};
use daemon::cordon_file;
use devices::{
    Catalog, Cordons, DeviceSet, Filter, Health, HostSnapshot, ListedDevice, Moment,
    ResourceDevices, ResourceOrigin, ResourceRule, SkipReason, Skipped, UnhealthyReason,
    Visibility,
};

use super::causes;
use super::runtime_files::runtime_files;
use crate::collect::NodeFacts;
use crate::finding::{Finding, FindingId, Subject, number_of};

/// What to do on a host without a GPU that can be advertised.
const INSTALL_OR_ASSIGN: &str = "install the GPU vendor's driver, or assign a GPU to this machine";

/// The configuration with its files and variables, and the values in it that have no effect.
pub(super) fn configuration(configuration: &Result<Config, ConfigError>) -> Vec<Finding> {
    let configuration = match configuration {
        Ok(configuration) => configuration,
        Err(error) => {
            let fix = "fix the configuration; `serve` does not start with it";
            let hint = error.hint().unwrap_or(fix);
            return vec![FindingId::ConfigurationInvalid.failed(error_chain(error), hint)];
        }
    };
    let models = configuration.models.iter();
    let configured = models.filter(|model| !model.sources().is_empty());
    let what = match configured.map(ToString::to_string).collect::<Vec<_>>().as_slice() {
        [] => "every value is a default".to_owned(),
        models => models.join("; "),
    };
    let mut checks = vec![Subject::Configuration.ok(what)];
    checks.extend(configuration.notices.iter().map(|notice| {
        FindingId::ConfigurationNotice.warning(notice, "remove what has no effect, or change it")
    }));
    checks
}

/// The files of `directx-visible` that are configured and missing.
pub(super) fn launcher(facts: &NodeFacts) -> Option<Finding> {
    let missing = &facts.missing_launcher_files;
    let catalog = Catalog::new(facts.configuration.as_ref().ok()?.policy.clone());
    if missing.is_empty() || !catalog.mounts_launcher() {
        return None;
    }
    let missing = missing.join(" and ");
    let is_required =
        catalog.resources().iter().any(|spec| spec.visibility == Visibility::Required);
    let (visibility, hint) = if is_required {
        (
            Visibility::Required,
            "set visibility.enabled of the chart, or copy the files into one of the folders; until \
             then the devices are unhealthy",
        )
    } else {
        (
            Visibility::Launcher,
            "set visibility.enabled of the chart, or copy the files into one of the folders, or set \
             visibility: off; until then containers do not get directx-visible",
        )
    };
    let what = format!(
        "visibility is {visibility}, but neither the folder of this program nor \
         %ProgramFiles%\\directx-visible has {missing}"
    );
    Some(FindingId::LauncherMissing.failed(what, hint))
}

/// What containers get with each advertised device, the resources that the kubelet gets, and the
/// adapters that are under none.
pub(super) fn advertised(facts: &NodeFacts) -> Vec<Finding> {
    let Ok(configuration) = &facts.configuration else {
        let unknown = [Subject::RuntimeFiles, Subject::Resources];
        return unknown.map(|subject| subject.skipped("the configuration is invalid")).into();
    };
    let offer = Catalog::new(configuration.policy.clone()).offer(&facts.snapshot);
    let set = DeviceSet::next(None, offer, Moment::default());
    let mut checks = Vec::new();
    for resource in &set.resources {
        let entries = resource.entries().iter();
        checks.extend(entries.flat_map(|entry| runtime_files(resource, entry, facts)));
    }
    let is_empty = set.resources.iter().all(|resource| resource.entries().is_empty());
    if is_empty {
        let what = "no device of this host is advertised to the kubelet";
        checks.push(
            FindingId::NothingAdvertised.failed(what, nothing_advertised(&set, &facts.snapshot)),
        );
    } else {
        checks.extend(set.resources.iter().map(|resource| one_resource(resource, &set)));
    }
    if let Cordons::Unknown(reason) = &facts.snapshot.cordoned {
        let what = format!("the cordoned devices are not known: {reason}");
        checks.push(FindingId::CordonsUnknown.failed(what, cordon_file::UNKNOWN_HINT));
    }
    checks.extend(set.cordoned().map(|(id, reason)| {
        let hint = "remove the device's name there to return it to service";
        FindingId::Cordoned.warning(reason.to_string(), hint).of(id.to_string())
    }));
    let skipped = set.skipped.iter();
    checks
        .extend(skipped.filter_map(|skipped| skipped_adapter(skipped, is_empty, &facts.snapshot)));
    // An adapter that the configuration excludes from the resource is in the line of the resource.
    let unmatched = set.unmatched_rules.iter();
    let unmatched = unmatched.filter(|rule| set.excluded_from(&rule.name).next().is_none());
    checks.extend(unmatched.map(|rule| unmatched_rule(rule, &set)));
    checks.extend(set.unmatched_cordons.iter().map(|cordon| {
        FindingId::CordonWithoutDevice
            .warning(cordon.to_string(), "compare it with the output of `devices`, or remove it")
    }));
    checks
}

/// What to do if no resource has a device.
fn nothing_advertised(set: &DeviceSet, snapshot: &HostSnapshot) -> String {
    if set.skipped.iter().all(|skipped| skipped.reason.is_no_gpu()) {
        return causes::no_device(snapshot).unwrap_or_else(|| INSTALL_OR_ASSIGN.to_owned());
    }
    let fix = "fix what the next lines report about each adapter";
    match causes::tcc_mode(snapshot.node.nvml.as_ref()) {
        Some(tcc) => format!("{fix}; {tcc}"),
        None => fix.to_owned(),
    }
}

/// One resource of a host that advertises a device.
fn one_resource(resource: &ResourceDevices, set: &DeviceSet) -> Finding {
    let name = resource.spec.name.to_string();
    let entries = resource.entries();
    let healthy = entries.iter().filter(|entry| entry.health.is_healthy()).count();
    if entries.is_empty() {
        return empty_resource(resource, set).of(name);
    }
    let shared = match resource.spec.sharing.replicas {
        NonZeroU32::MIN => String::new(),
        replicas => format!(", each shared by up to {replicas} containers"),
    };
    let what = format!("{healthy} of {} healthy{shared}", number_of(entries.len(), "device"));
    if healthy == 0 {
        let is_cordoned = |entry: &ListedDevice| {
            matches!(entry.health, Health::Unhealthy(UnhealthyReason::Cordoned(_)))
        };
        let waits =
            |entry: &ListedDevice| entry.health == Health::Unhealthy(UnhealthyReason::NoLauncher);
        let hint = if entries.iter().all(is_cordoned) {
            "return a device to service, as the next lines say; pods stay Pending until then"
        } else if entries.iter().any(waits) {
            "its devices wait for directx-visible, as the lines `visibility` say; pods stay Pending \
             until a device is healthy"
        } else {
            "fix what the lines `device` report; pods stay Pending until a device is healthy"
        };
        return FindingId::NoHealthyDevice.failed(what, hint).of(name);
    }
    Subject::Resources.ok(what).of(name)
}

/// A resource without devices. That is normal where the host has no device for it, since few hosts
/// have devices of both driver models, or where rules give all of them another name.
fn empty_resource(resource: &ResourceDevices, set: &DeviceSet) -> Finding {
    let claimed = claimed_by_rules(resource, set);
    let excluded: Vec<&Skipped> = set.excluded_from(&resource.spec.name).collect();
    let fixes: BTreeSet<String> = excluded.iter().map(|skipped| fix(skipped)).collect();
    let fixes = Vec::from_iter(fixes).join("; ");
    if !claimed.is_empty() {
        let what = format!("capacity 0: rules advertise {}", claimed.join(", "));
        let change = "if pods should get them under this name, change the match of the rule";
        return Subject::Resources.ok(what).hint(if fixes.is_empty() { change } else { &fixes });
    }
    let what = match excluded.as_slice() {
        [] => {
            let kind = match resource.spec.origin {
                ResourceOrigin::Model(model) => Filter::of(model).to_string(),
                ResourceOrigin::Rule(_) => "matching".to_owned(),
            };
            let what = format!("capacity 0: no {kind} device of this host is advertised");
            return Subject::Resources.ok(what);
        }
        [only] => format!("capacity 0: its only candidate is not advertised: {}", name(only)),
        several => {
            format!("capacity 0: its only candidates are not advertised: {}", names(several))
        }
    };
    FindingId::OnlyCandidateNotAdvertised
        .warning(what, format!("pods that request it stay Pending; {fixes}"))
}

/// The devices of a driver model's own resource that rules advertise under other names.
fn claimed_by_rules(resource: &ResourceDevices, set: &DeviceSet) -> Vec<String> {
    let ResourceOrigin::Model(model) = resource.spec.origin else { return Vec::new() };
    let mut claimed = Vec::new();
    for other in &set.resources {
        let of_model = other.entries().iter().filter(|entry| entry.policy.model == model);
        let under = &other.spec.name;
        claimed.extend(of_model.map(|entry| format!("{} as {under}", entry.device.description)));
    }
    claimed.dedup();
    claimed
}

/// What makes the skipped adapter a device of its resource.
fn fix(skipped: &Skipped) -> String {
    let name = name(skipped);
    match skipped.reason.configuration_fix() {
        Some(fix) => format!("if pods should get {name}, {fix}"),
        None => format!("fix what the line about {name} reports"),
    }
}

fn names(skipped: &[&Skipped]) -> String {
    skipped.iter().map(|skipped| name(skipped)).collect::<Vec<_>>().join(", ")
}

fn name(skipped: &Skipped) -> String {
    match skipped.description.as_str() {
        "" => format!("adapter with LUID {}", skipped.luid),
        description => format!("{description} (LUID {})", skipped.luid),
    }
}

/// A rule that no device matches, with the advertised devices that come closest to it.
fn unmatched_rule(rule: &ResourceRule, set: &DeviceSet) -> Finding {
    let mut nearest: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for resource in &set.resources {
        for entry in resource.entries() {
            let description = &entry.device.description;
            let unmet = rule.matches.unmet(&entry.device, entry.policy.model);
            let text = match unmet.as_slice() {
                [] => format!("{description} already belongs to {}", resource.spec.name),
                keys => format!("{description} differs in `{}`", keys.join("`, `")),
            };
            nearest.entry(unmet.len()).or_default().insert(text);
        }
    }
    let what = "a rule of this resource matches no device of this host";
    let compare = "compare the rule's match with the output of `devices`";
    let hint = match nearest.into_values().next() {
        Some(nearest) => format!("{compare}: {}", Vec::from_iter(nearest).join("; ")),
        None => compare.to_owned(),
    };
    FindingId::RuleWithoutDevice.warning(what, hint).of(rule.name.to_string())
}

/// An adapter that is under no resource. Software adapters never are and have no line. An adapter
/// that the configuration excludes needs a fix here only if `is_empty`, that is, if no resource has
/// a device: otherwise the line of its resource has it.
fn skipped_adapter(skipped: &Skipped, is_empty: bool, snapshot: &HostSnapshot) -> Option<Finding> {
    let name = name(skipped);
    let what = format!("not advertised: {}", skipped.reason);
    let fix = skipped.reason.configuration_fix();
    let fix = fix.map(|fix| format!("if pods should get it, {fix}"));
    let tcc_mode = causes::tcc_mode(snapshot.node.nvml.as_ref());
    let hint = match &skipped.reason {
        SkipReason::Software => return None,
        // Remote sessions are normal, and need no fix.
        SkipReason::IndirectDisplay => return Some(Subject::Resources.ok(what).of(name)),
        SkipReason::NoPnpDevice if !snapshot.host.is_this_machine => {
            "record the node again; in an inventory written by hand, give the adapter the key `pnp` \
             with `id` and `locationPaths` (docs/reference/inventory.md)"
        }
        SkipReason::NoPnpDevice | SkipReason::Unreadable(_) => {
            "run doctor again in a minute: its driver may be being replaced, or it belongs to a \
             remote session; if the problem persists, reinstall the driver and restart the host"
        }
        SkipReason::NoLocationPath => {
            "Device Manager shows no location path for it either: update the firmware, or pass \
             the device to this virtual machine as a PCI device; in an inventory, add locationPaths"
        }
        SkipReason::SameLocationPath(..) => {
            "an allocation by this path could give a container either device: restart the host; if \
             the problem persists, update the firmware; in an inventory, correct locationPaths"
        }
        // Pods get other devices, and the configuration excludes this one.
        _ if !is_empty => return Some(Subject::Resources.ok(what).of(name)),
        SkipReason::NoModel { needed: None, .. } | SkipReason::BasicAdapter => {
            tcc_mode.as_deref().unwrap_or(INSTALL_OR_ASSIGN)
        }
        SkipReason::ComputeOnlyOnLinux => {
            "if an application can use it, advertise it with a rule of `resources`"
        }
        _ => match &fix {
            Some(fix) => fix,
            None => return Some(Subject::Resources.ok(what).of(name)),
        },
    };
    Some(FindingId::AdapterNotAdvertised.warning(what, hint).of(name))
}
