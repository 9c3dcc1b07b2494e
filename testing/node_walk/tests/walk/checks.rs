//! What must agree at rest.

use std::collections::{BTreeMap, BTreeSet};

use daemon::metrics::Scrape;
use devices::{Catalog, DeviceSet, DriverModel, Moment};
use process::metrics::render;
use report::{
    ConditionStatus, NodeReport, Progress, ReportedDevice, devices_healthy, devices_ready, labels,
};
use serde_json::{Value, json};

use crate::node::{Node, TAINT, configuration};

/// The number of devices that can be allocated, by resource.
type Counts = BTreeMap<String, usize>;

fn agree<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}:\n  found    {found:?}\n  expected {expected:?}"))
}

impl Node {
    /// Fails with what does not agree.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.is_kubelet_running {
            agree("allocatable", &self.allocatable(), &self.listed())?;
        }
        let mut reports = Vec::new();
        for plugin in &self.plugins {
            let Some(running) = &plugin.running else { continue };
            let set = running.devices.borrow().set().clone();
            agree("metrics", &metrics(&set), &healthy(&set))?;
            let report = NodeReport::of(&set);
            let predicted = self.predicted(&plugin.models);
            // Labels depend on no cordon, and on no device that was removed some minutes ago.
            let of_report = labels(&report, true);
            agree("labels of the report", &of_report, &labels(&predicted, true))?;
            if self.reports_cordons() && report.devices().all(ReportedDevice::is_present) {
                agree("what the host gives without a past", &report, &predicted)?;
            }
            if !plugin.hangs {
                reports.push(report);
            }
        }
        let hangs = self.plugins.iter().any(|plugin| plugin.running.is_some() && plugin.hangs);
        let is_complete = reports.len() == self.plugins.len();
        let reason = if hangs { "PluginNotResponding" } else { "PluginNotRunning" };
        if reports.is_empty() {
            return self.check_unknown(reason);
        }
        if !self.is_followed() {
            return Ok(());
        }
        let report = NodeReport::merged(reports);
        let node = self.server.node();
        agree("labels", &own_labels(&node), &json!(labels(&report, true)))?;
        let healthy = devices_healthy(&report);
        let expected =
            (healthy.status.to_string(), healthy.reason.to_owned(), healthy.message.to_string());
        agree("healthy", &condition(&node, "DirectXDevicesHealthy"), &expected)?;
        // Without removed devices, two plugins must say what one would say.
        let one = self.predicted(&[DriverModel::Wddm, DriverModel::Mcdm]);
        if is_complete && ids(&report) == ids(&one) {
            let one = devices_healthy(&one);
            let expected = (one.status.to_string(), one.reason.to_owned(), one.message.to_string());
            let found = condition(&node, "DirectXDevicesHealthy");
            agree("healthy, as one plugin", &found, &expected)?;
        }
        if !is_complete {
            let (status, found, _) = condition(&node, "DirectXDevicesReady");
            return agree("ready", &(status.as_str(), found.as_str()), &("False", reason));
        }
        if self.is_kubelet_running {
            self.check_ready(&node, &report)?;
        }
        Ok(())
    }

    /// Whether feature discovery and the API server run.
    fn is_followed(&self) -> bool {
        self.discovery.is_some() && self.is_server_running
    }

    /// Whether the plugin has got the newest annotation.
    fn reports_cordons(&self) -> bool {
        self.is_followed()
    }

    /// The plugin does not report its devices, for this reason.
    fn check_unknown(&self, reason: &str) -> Result<(), String> {
        if !self.is_followed() {
            return Ok(());
        }
        let node = self.server.node();
        for kind in ["DirectXDevicesHealthy", "DirectXDevicesReady"] {
            let (status, found, _) = condition(&node, kind);
            agree(kind, &(status.as_str(), found.as_str()), &("Unknown", reason))?;
        }
        Ok(())
    }

    fn check_ready(&self, node: &Value, report: &NodeReport) -> Result<(), String> {
        let allocatable = self.allocatable();
        let ready = devices_ready(report, |resource| match allocatable.get(resource.as_str()) {
            Some(count) if *count > 0 => Progress::Allocatable,
            _ => Progress::NotAllocatable,
        });
        let expected =
            (ready.status.to_string(), ready.reason.to_owned(), ready.message.to_string());
        agree("ready", &condition(node, "DirectXDevicesReady"), &expected)?;
        let has_taint =
            node["spec"]["taints"].as_array().is_some_and(|t| t.iter().any(|t| t["key"] == TAINT));
        if ready.status == ConditionStatus::True && has_taint {
            return Err("the startup taint stays".to_owned());
        }
        Ok(())
    }

    /// What the node object says.
    fn allocatable(&self) -> Counts {
        let node = self.server.node();
        let counts = node["status"]["allocatable"].as_object().cloned().unwrap_or_default();
        let counts = counts.into_iter().map(|(name, count)| {
            let count = count.as_str().and_then(|count| count.parse().ok()).unwrap_or_default();
            (name, count)
        });
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// What the plugin lists.
    fn listed(&self) -> Counts {
        if !self.is_server_running {
            return self.allocatable();
        }
        let mut counts = Counts::new();
        for plugin in self.running() {
            let set = plugin.devices.borrow().set().clone();
            for resource in &set.resources {
                let healthy = resource.replicas().filter(|replica| replica.health.is_healthy());
                let count = healthy.count();
                if count > 0 {
                    counts.insert(resource.spec.name.to_string(), count);
                }
            }
        }
        counts
    }

    /// What a plugin for these driver models that is started now would report.
    fn predicted(&self, models: &[DriverModel]) -> NodeReport {
        let policy = configuration(self.configuration, models).unwrap().policy;
        let offer = Catalog::new(policy).offer(&self.snapshot());
        NodeReport::of(&DeviceSet::next(None, offer, Moment::default()))
    }
}

/// The IDs of the devices.
fn ids(report: &NodeReport) -> BTreeSet<String> {
    report.devices().map(|device| device.id.to_string()).collect()
}

/// The number of healthy devices.
fn healthy(set: &DeviceSet) -> usize {
    let ids: BTreeSet<_> = set
        .entries()
        .filter(|entry| entry.health.is_healthy())
        .map(|entry| &entry.device.id)
        .collect();
    ids.len()
}

/// The number of healthy devices in the metrics.
fn metrics(set: &std::sync::Arc<DeviceSet>) -> usize {
    let text = render(Scrape { devices: set.clone(), ..Scrape::default() });
    let values = text.lines().filter(|line| line.starts_with("directx_device_healthy{"));
    values.filter(|line| line.ends_with(" 1.0") || line.ends_with(" 1")).count()
}

/// The labels that feature discovery has set.
fn own_labels(node: &Value) -> Value {
    let labels = node["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.into_iter().collect()
}

/// Status, reason and message of a condition.
fn condition(node: &Value, kind: &str) -> (String, String, String) {
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    let text = |name: &str| {
        let text = found.and_then(|condition| condition[name].as_str());
        text.unwrap_or_default().to_owned()
    };
    (text("status"), text("reason"), text("message"))
}
