//! What the plugin that runs on this node reports, and how that differs from what the other checks
//! expect of one with this configuration.

use std::collections::{BTreeMap, BTreeSet};

use daemon::answering_daemons::{Answers, NodeState, SilenceReason, SilentDaemon};
use devices::report::{NodeReport, ReportedDevice, ReportedResource, UnhealthyKind};
use devices::{Catalog, DeviceSet, Moment, PnpDevice};

use super::NOT_IN_INVENTORY;
use crate::collect::NodeFacts;
use crate::finding::{Finding, FindingId, Subject, number_of};

/// How many differences are named.
const NAMED: usize = 8;

/// What the plugin reports.
pub(super) fn plugin(facts: &NodeFacts) -> Vec<Finding> {
    let Some(answers) = &facts.plugin else {
        return vec![Subject::Plugin.skipped(NOT_IN_INVENTORY)];
    };
    let mut checks = Vec::new();
    match answers.node_state() {
        NodeState::NotServed => {
            checks.push(Subject::Plugin.skipped("no plugin serves devices on this node"));
        }
        NodeState::NotReported(daemon) => checks.push(silent(&daemon)),
        NodeState::Known(listing) => {
            let node = &listing.node;
            checks.push(listed(node, expected(facts).as_ref()));
            let without_adapter = &facts.snapshot.devices_without_adapter;
            let unhealthy = |device: &ReportedDevice| unhealthy(device, without_adapter);
            checks.extend(node.devices().filter_map(unhealthy));
            checks.extend(notices(answers, node));
            checks.extend(listing.silent.iter().map(silent));
        }
    }
    checks.extend(rejected(answers));
    checks
}

/// A plugin whose devices are not known.
fn silent(daemon: &SilentDaemon) -> Finding {
    let (id, hint) = match daemon.reason {
        SilenceReason::Busy => {
            (FindingId::PluginNotResponding, "if it still does not after a minute, restart it")
        }
        SilenceReason::OtherVersion(_) => (
            FindingId::PluginVersion,
            "run the plugin's own doctor, in its container or its folder",
        ),
        SilenceReason::Pending(_) => (
            FindingId::DevicesPending,
            "if it still does not after a minute, fix what the lines `device` report",
        ),
        SilenceReason::NotRunning => (
            FindingId::PluginNotResponding,
            "find out why its pod does not run; if there is no such DaemonSet, remove the variable \
             DIRECTX_OTHER_DRIVER_MODELS",
        ),
    };
    id.warning(daemon.to_string(), hint)
}

/// What a plugin with this configuration would list on this host, if both are known.
fn expected(facts: &NodeFacts) -> Option<NodeReport> {
    if facts.unread.is_some() {
        return None;
    }
    let policy = facts.configuration.as_ref().ok()?.policy.clone();
    let offer = Catalog::new(policy).offer(&facts.snapshot);
    Some(NodeReport::of(&DeviceSet::next(None, offer, Moment::default())))
}

/// What the plugin lists, compared with what is expected.
fn listed(node: &NodeReport, expected: Option<&NodeReport>) -> Finding {
    let devices = number_of(node.devices().count(), "device");
    let resources = number_of(node.resources.len(), "resource");
    let what = format!("the plugin lists {devices} in {resources}");
    let differences = expected.map(|expected| differences(node, expected)).unwrap_or_default();
    if differences.is_empty() {
        return Subject::Plugin.ok(what);
    }
    let mut named = differences[..differences.len().min(NAMED)].join("; ");
    if differences.len() > NAMED {
        named.push_str("; and more");
    }
    FindingId::PluginDiffers.warning(
        format!("{what}, not what the lines `resources` say: {named}"),
        "run doctor with the options, variables and configuration file of the plugin; if it has \
         the same, run doctor again in a minute, since the host may have changed",
    )
}

/// What differs between the lists of the plugin and the expected ones.
fn differences(node: &NodeReport, expected: &NodeReport) -> Vec<String> {
    let by_name = |report: &NodeReport| -> BTreeMap<String, ReportedResource> {
        report.resources.iter().map(|r| (r.name.to_string(), r.clone())).collect()
    };
    let mut expected = by_name(expected);
    let mut differences = Vec::new();
    for (name, found) in by_name(node) {
        match expected.remove(&name) {
            None => differences.push(format!("it has {name}")),
            Some(expected) => differences.extend(difference(&found, &expected)),
        }
    }
    differences.extend(expected.into_keys().map(|name| format!("it lacks {name}")));
    differences
}

/// How a resource differs from the expected one. A device that was removed from the host is listed
/// for its grace period.
fn difference(found: &ReportedResource, expected: &ReportedResource) -> Vec<String> {
    let name = &found.name;
    let mut differences = Vec::new();
    if found.replicas != expected.replicas {
        let listed = found.replicas;
        let expected = expected.replicas;
        differences
            .push(format!("the replicas of each device of {name} are {listed}, not {expected}"));
    }
    let is_removed = |device: &&ReportedDevice| {
        device.unhealthy.as_ref().is_some_and(|reason| reason.kind == UnhealthyKind::Removed)
    };
    let ids = |devices: &[ReportedDevice]| -> BTreeSet<String> {
        let devices = devices.iter().filter(|device| !is_removed(device));
        devices.map(|device| device.id.to_string()).collect()
    };
    let found = ids(&found.devices);
    let expected = ids(&expected.devices);
    differences.extend(found.difference(&expected).map(|id| format!("{name} has {id}")));
    differences.extend(expected.difference(&found).map(|id| format!("{name} lacks {id}")));
    differences
}

/// A device that pods do not get, for the plugin's reason. If it has no adapter, the plugin counts
/// it as removed.
fn unhealthy(device: &ReportedDevice, without_adapter: &[PnpDevice]) -> Option<Finding> {
    let reason = device.unhealthy.as_ref()?;
    let hint = match reason.kind {
        UnhealthyKind::Cordoned => "remove the device's name there to return it to service",
        UnhealthyKind::CordonsUnknown => "fix what the plugin reports about the cordoned devices",
        UnhealthyKind::NoLauncher => "fix what the plugin reports about directx-visible",
        UnhealthyKind::Resets => {
            "it becomes healthy when its resets are old enough; update its driver, or replace it"
        }
        UnhealthyKind::Removed if without_adapter.iter().all(|pnp| pnp.id != device.id) => {
            "if this was not intended, check the device and its slot"
        }
        _ => "fix what the lines `device` report about it",
    };
    let what = format!("the plugin lists it as unhealthy: {}", reason.text);
    Some(FindingId::ListedAsUnhealthy.warning(what, hint).of(device.id.to_string()))
}

/// What the plugins want an administrator to know. That a device is unhealthy is reported already.
fn notices(answers: &Answers, node: &NodeReport) -> Vec<Finding> {
    let known: BTreeSet<String> = node
        .devices()
        .filter_map(|device| {
            let reason = &device.unhealthy.as_ref()?.text;
            Some(format!("device {} is unhealthy: {reason}", device.id))
        })
        .collect();
    let reports = answers.daemons.iter().filter_map(|daemon| daemon.report.as_ref().ok());
    let notices: BTreeSet<&String> = reports.flat_map(|report| &report.notices).collect();
    notices
        .into_iter()
        .filter(|notice| !known.contains(*notice))
        .map(|notice| {
            FindingId::PluginNotice.warning(notice, "the log of the plugin has the details")
        })
        .collect()
}

/// The configurations that a plugin does not apply.
fn rejected(answers: &Answers) -> impl Iterator<Item = Finding> {
    let reports = answers.daemons.iter().filter_map(|daemon| daemon.report.as_ref().ok());
    let errors: BTreeSet<&String> =
        reports.filter_map(|report| report.rejected_configuration.as_ref()).collect();
    errors.into_iter().map(|error| {
        let what = format!("the plugin rejected its changed configuration: {error}");
        FindingId::ConfigurationRejected
            .failed(what, "fix the configuration; the plugin uses the previous one")
    })
}
