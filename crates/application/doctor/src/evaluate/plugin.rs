//! What the plugin that runs on this node reports.

use std::collections::BTreeSet;

use host::PnpDevice;
use plugin_status::answering_daemons::{Answers, NodeState, SilenceReason, SilentDaemon};
use report::{NodeReport, ReportedDevice, UnhealthyKind};

use crate::facts::NodeFacts;
use crate::finding::{Finding, FindingId, NOT_IN_INVENTORY, Subject, number_of};

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
            let devices = number_of(node.devices().count(), "device");
            let resources = number_of(node.resources.len(), "resource");
            checks.push(Subject::Plugin.ok(format!("the plugin lists {devices} in {resources}")));
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
    id.warning(daemon.message().to_string(), hint)
}

/// A device that pods do not get, for the plugin's reason. If it has no adapter, the plugin counts
/// it as removed.
fn unhealthy(device: &ReportedDevice, without_adapter: &[PnpDevice]) -> Option<Finding> {
    let reason = device.unhealthy.as_ref()?;
    let hint = match reason.kind {
        UnhealthyKind::Cordoned => "remove the device's name there to return it to service",
        UnhealthyKind::CordonsUnknown => "fix what the plugin reports about the cordoned devices",
        UnhealthyKind::NoLauncher => "fix what the plugin reports about directx-visible",
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
