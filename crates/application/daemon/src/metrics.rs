//! The metrics of the plugin and its devices, and their text format.
//!
//! [`PluginMetrics`] counts what the daemon does. A [`Scrape`] adds what is known at one moment:
//! the device set, the telemetry and who holds which device. [`render`] turns both into text.
//! Names, types, labels and descriptions are in [`METRICS`], from which the documentation is
//! generated.

mod catalog;
mod device_metrics;
mod plugin_metrics;
mod sheet;

use std::collections::BTreeMap;
use std::time::Duration;

use device_plugin::Readiness;
use devices::{DeviceSet, Luid, Telemetry};
use win32::container_processes::ContainerProcess;

use crate::configuration::ReloadStatus;

pub use catalog::{DEVICE_LABELS, METRICS, Metric, MetricKind};
pub use plugin_metrics::{PluginMetrics, REFUSAL_REASONS};
pub use sheet::{Labels, Sheet, labels};

/// The value of the header `Content-Type`: the text format of Prometheus, version 0.0.4.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is known at the moment of a scrape.
pub struct Scrape<'a> {
    /// The name of the node.
    pub host_name: &'a str,
    /// The plugin's version.
    pub version: &'a str,
    /// The devices.
    pub devices: &'a DeviceSet,
    /// What was measured of each adapter, and how long ago; `None` if nothing was.
    pub telemetry: Option<(&'a BTreeMap<Luid, Telemetry>, Duration)>,
    /// Who holds which replica; `None` if the kubelet does not say.
    pub holders: Option<&'a [Holder]>,
    /// The processes of containers that hold a device.
    pub processes: &'a [ContainerProcess],
    /// The resources, and whether a kubelet has their lists.
    pub readiness: &'a Readiness,
    /// The changes of the configuration.
    pub reloads: &'a ReloadStatus,
    /// How many log lines could not be written.
    pub log_lines_dropped: u64,
    /// Source, reason and number of the failures to read data for metrics.
    pub readings: &'a [(&'static str, &'static str, u64)],
}

/// A container that holds a replica.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Holder {
    /// The resource.
    pub resource: String,
    /// The replica ID.
    pub replica: String,
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The UID of the pod, if the kubelet reports it.
    pub pod_uid: Option<String>,
    /// The name of the container.
    pub container: String,
}

/// The text of a scrape.
#[must_use]
pub fn render(metrics: &PluginMetrics, scrape: &Scrape<'_>) -> String {
    let mut sheet = Sheet::default();
    device_metrics::add(&mut sheet, scrape);
    add_plugin_metrics(&mut sheet, metrics, scrape);
    sheet.render()
}

fn add_plugin_metrics(sheet: &mut Sheet, metrics: &PluginMetrics, scrape: &Scrape<'_>) {
    let build = [
        ("version", scrape.version),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ];
    sheet.gauges(catalog::BUILD_INFO, [(labels(&build), 1.0)]);
    let resources = &scrape.readiness.resources;
    let ready = resources.iter().map(|resource| {
        (labels(&[("resource", &resource.name)]), f64::from(u8::from(resource.is_ready())))
    });
    sheet.gauges(catalog::RESOURCE_READY, ready);
    sheet.add(catalog::ALLOCATIONS, metrics.allocations.clone());
    sheet.add(catalog::REFUSALS, metrics.refusals.clone());
    sheet.add(catalog::ALLOCATE_SECONDS, metrics.allocate_seconds.clone());
    let registrations = resources.iter().flat_map(|resource| {
        resource.registrations.iter().map(|(cause, count)| {
            (labels(&[("resource", &resource.name), ("cause", cause)]), *count)
        })
    });
    sheet.counters(catalog::REGISTRATIONS, registrations);
    sheet.add(catalog::LIST_UPDATES, metrics.list_updates.clone());
    sheet.add(catalog::DISCOVERY_SECONDS, metrics.discovery_seconds.clone());
    sheet.add(catalog::DISCOVERY_FAILURES, metrics.discovery_failures.clone());
    let reloads = [("applied", scrape.reloads.applied), ("rejected", scrape.reloads.rejected)]
        .map(|(result, count)| (labels(&[("result", result)]), count));
    sheet.counters(catalog::RELOADS, reloads);
    let current = f64::from(u8::from(scrape.reloads.last_error.is_none()));
    sheet.gauges(catalog::LAST_RELOAD_SUCCESSFUL, [(Labels::new(), current)]);
    sheet.counters(catalog::LOG_LINES_DROPPED, [(Labels::new(), scrape.log_lines_dropped)]);
    let age = scrape.telemetry.map(|(_, age)| (Labels::new(), age.as_secs_f64()));
    sheet.gauges(catalog::TELEMETRY_AGE, age);
    let readings = scrape.readings.iter().map(|(source, reason, failures)| {
        (labels(&[("source", source), ("reason", reason)]), *failures)
    });
    sheet.counters(catalog::READING_FAILURES, readings);
}
