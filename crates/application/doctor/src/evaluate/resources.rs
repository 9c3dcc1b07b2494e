//! The configuration, and the resources under which it advertises this host's devices.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use command_line::error_chain;
use config::{Config, ConfigError};
use devices::{
    Catalog, DeviceSet, Filter, Moment, NotAdvertised, NotAdvertisedReason, Remedy, ResourceName,
    ResourceOrigin, ResourceRule, Visibility,
};
use host::{Cordons, HostFacts, HostSnapshot};
use plugin_status::answering_daemons::{Answers, NodeState};
use plugin_status::cordon_file;
use report::{NodeReport, ReportedDevice, ReportedResource, UnhealthyKind};

use super::causes;
use super::runtime_files::runtime_files;
use crate::facts::NodeFacts;
use crate::finding::{Finding, FindingId, Subject, number_of};

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
pub(super) fn launcher(facts: &NodeFacts, catalog: Option<&Catalog>) -> Option<Finding> {
    let missing = &facts.missing_launcher_files;
    let catalog = catalog?;
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
pub(super) fn advertised(facts: &NodeFacts, catalog: Option<&Catalog>) -> Vec<Finding> {
    let Some(catalog) = catalog else {
        let unknown = [Subject::RuntimeFiles, Subject::Resources];
        return unknown.map(|subject| subject.skipped("the configuration is invalid")).into();
    };
    let set = DeviceSet::next(None, catalog.offer(&facts.snapshot), Moment::default());
    let mut checks = Vec::new();
    for resource in &set.resources {
        let entries = resource.entries().iter();
        checks.extend(entries.flat_map(|entry| runtime_files(resource, entry, facts)));
    }
    // Only a plugin that runs knows what it lists.
    let listed = match facts.plugin.as_ref().map(Answers::node_state) {
        Some(NodeState::Known(listing)) => listing.node,
        _ => NodeReport::of(&set),
    };
    let is_empty = listed.devices().next().is_none();
    if is_empty {
        let what = "no device of this host is advertised to the kubelet";
        checks.push(
            FindingId::NothingAdvertised.failed(what, nothing_advertised(&set, &facts.snapshot)),
        );
    } else {
        checks.extend(listed.resources.iter().map(|resource| one_resource(resource, &set)));
    }
    if let Cordons::Unknown(reason) = &facts.snapshot.cordoned {
        let what = format!("the cordoned devices are not known: {reason}");
        checks.push(FindingId::CordonsUnknown.failed(what, cordon_file::UNKNOWN_HINT));
    }
    checks.extend(set.cordoned().map(|(id, reason)| {
        let hint = "remove the device's name there to return it to service";
        FindingId::Cordoned.warning(reason.to_string(), hint).of(id.to_string())
    }));
    let adapters = set.not_advertised.iter();
    checks
        .extend(adapters.filter_map(|adapter| not_advertised(adapter, is_empty, &facts.snapshot)));
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

/// What to do if no resource has a device. `set` has what this program's configuration advertises.
pub(super) fn nothing_advertised(set: &DeviceSet, snapshot: &HostSnapshot) -> String {
    if set.entries().next().is_some() {
        return "run doctor with the options, variables and configuration file of the plugin"
            .to_owned();
    }
    let is_of_gpu = |not_advertised: &NotAdvertised| {
        let mut adapters = snapshot.adapters.iter();
        let adapter = adapters.find(|adapter| adapter.luid == not_advertised.luid);
        adapter.is_none_or(|adapter| !adapter.is_display_controller())
            && !not_advertised.reason.is_no_gpu()
    };
    if !set.not_advertised.iter().any(is_of_gpu) {
        return causes::no_device(snapshot)
            .unwrap_or_else(|| causes::install_or_assign(&snapshot.host));
    }
    let fix = "fix what the next lines report about each adapter";
    match causes::tcc_mode(snapshot.node.nvml.as_ref()) {
        Some(tcc) => format!("{fix}; {tcc}"),
        None => fix.to_owned(),
    }
}

/// One resource of a host that advertises a device.
fn one_resource(resource: &ReportedResource, set: &DeviceSet) -> Finding {
    let name = resource.name.to_string();
    let devices = &resource.devices;
    if devices.is_empty() {
        return empty_resource(&resource.name, set).of(name);
    }
    let healthy = devices.iter().filter(|device| device.is_healthy()).count();
    let shared = match resource.replicas {
        NonZeroU32::MIN => String::new(),
        replicas => format!(", each shared by up to {replicas} containers"),
    };
    let what = format!("{healthy} of {} healthy{shared}", number_of(devices.len(), "device"));
    if healthy == 0 {
        let is = |device: &ReportedDevice, kind| {
            device.unhealthy.as_ref().is_some_and(|reason| reason.kind == kind)
        };
        let hint = if devices.iter().all(|device| is(device, UnhealthyKind::Cordoned)) {
            "return a device to service; pods stay Pending until then"
        } else if devices.iter().any(|device| is(device, UnhealthyKind::NoLauncher)) {
            "its devices wait for directx-visible, as the lines `visibility` or `plugin` say; pods \
             stay Pending until a device is healthy"
        } else if devices.iter().any(|device| is(device, UnhealthyKind::CordonsUnknown)) {
            "fix what the lines `resources` or `plugin` say about cordoned devices; pods stay Pending \
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
fn empty_resource(resource: &ResourceName, set: &DeviceSet) -> Finding {
    let origin = set.resource(resource).map(|devices| devices.spec.origin);
    let claimed = claimed_by_rules(origin, set);
    let excluded: Vec<&NotAdvertised> = set.excluded_from(resource).collect();
    let fixes: BTreeSet<String> = excluded.iter().map(|adapter| fix(adapter, &set.host)).collect();
    let fixes = Vec::from_iter(fixes).join("; ");
    if !claimed.is_empty() {
        let what = format!("capacity 0: rules advertise {}", claimed.join(", "));
        let change = "if pods should get them under this name, change the match of the rule";
        return Subject::Resources.ok(what).hint(if fixes.is_empty() { change } else { &fixes });
    }
    let what = match excluded.as_slice() {
        [] => {
            let kind = match origin {
                Some(ResourceOrigin::Model(model)) => Filter::of(model).to_string(),
                _ => "matching".to_owned(),
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
fn claimed_by_rules(origin: Option<ResourceOrigin>, set: &DeviceSet) -> Vec<String> {
    let Some(ResourceOrigin::Model(model)) = origin else { return Vec::new() };
    let mut claimed = Vec::new();
    for other in &set.resources {
        let of_model = other.entries().iter().filter(|entry| entry.policy.model == model);
        let under = &other.spec.name;
        claimed.extend(of_model.map(|entry| format!("{} as {under}", entry.device.description)));
    }
    claimed.dedup();
    claimed
}

/// What makes the adapter a device of its resource.
fn fix(adapter: &NotAdvertised, host: &HostFacts) -> String {
    let name = name(adapter);
    match adapter.reason.configuration_fix(host) {
        Some(fix) => format!("if pods should get {name}, {fix}"),
        None => format!("fix what the line about {name} reports"),
    }
}

fn names(adapters: &[&NotAdvertised]) -> String {
    adapters.iter().map(|adapter| name(adapter)).collect::<Vec<_>>().join(", ")
}

fn name(adapter: &NotAdvertised) -> String {
    match adapter.description.as_str() {
        "" => format!("adapter with LUID {}", adapter.luid),
        description => format!("{description} (LUID {})", adapter.luid),
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

/// An adapter that is under no resource. `is_empty`: no resource has a device.
pub(super) fn not_advertised(
    adapter: &NotAdvertised,
    is_empty: bool,
    snapshot: &HostSnapshot,
) -> Option<Finding> {
    // Every host has software adapters.
    if adapter.reason == NotAdvertisedReason::Software {
        return None;
    }
    let hint = match adapter.reason.remedy(&snapshot.host) {
        Remedy::Repair(fix) => Some(fix.to_owned()),
        // Pods get other devices. If the resource of this one has none, its line has the fix.
        Remedy::Configure(_) | Remedy::VendorDriver if !is_empty => None,
        Remedy::Configure(fix) => Some(format!("if pods should get it, {fix}")),
        Remedy::VendorDriver => {
            let mut adapters = snapshot.adapters.iter();
            let found = adapters.find(|found| found.luid == adapter.luid);
            found.and_then(|found| causes::without_compute(found, &snapshot.host))
        }
        Remedy::None => None,
    };
    let what = format!("not advertised: {}", adapter.reason);
    let finding = match hint {
        Some(hint) => FindingId::AdapterNotAdvertised.warning(what, hint),
        None => Subject::Resources.ok(what),
    };
    Some(finding.of(name(adapter)))
}
