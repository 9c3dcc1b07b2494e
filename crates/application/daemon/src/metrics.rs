//! The metrics of the plugin and its devices, and their text.
//!
//! [`PluginMetrics`] counts what the daemon does. A [`Scrape`] adds what is known at one moment:
//! the device set, the telemetry and who holds which device. [`render`](process::metrics::render) turns it into text.
//! Names, types, labels and descriptions are in [`METRICS`], from which the documentation is
//! generated.

mod catalog;
mod device_metrics;
mod plugin_metrics;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use device_plugin::Readiness;
use devices::DeviceSet;
use host::{Luid, ReplicaId, Telemetry};
use process::metrics::labels;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use win32::container_processes::ContainerProcess;

use crate::configuration::ReloadStatus;

pub use catalog::{DEVICE_LABELS, METRICS};
pub use plugin_metrics::{PluginMetrics, RefusalReason};

/// What is known at the moment of a scrape.
#[derive(Default, Debug)]
pub struct Scrape {
    /// What the daemon counted.
    pub metrics: PluginMetrics,
    /// The name of the node.
    pub host_name: String,
    /// The plugin's version.
    pub version: &'static str,
    /// The devices.
    pub devices: Arc<DeviceSet>,
    /// What was measured of each adapter, and how long ago; `None` if nothing was.
    pub telemetry: Option<(Arc<BTreeMap<Luid, Telemetry>>, Duration)>,
    /// Who holds which replica; empty if the kubelet does not say.
    pub holders: Vec<Holder>,
    /// The processes of containers that hold a device.
    pub processes: Vec<ContainerProcess>,
    /// The resources, and whether a kubelet has their lists.
    pub readiness: Readiness,
    /// The changes of the configuration.
    pub reloads: ReloadStatus,
    /// How many log lines could not be written.
    pub log_lines_dropped: u64,
    /// Source, reason and number of the failures to read data for metrics.
    pub readings: Vec<(&'static str, &'static str, u64)>,
}

/// A container that holds a replica.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Holder {
    /// The resource under which it was allocated, which may have another name now.
    pub resource: String,
    /// The replica.
    pub replica: ReplicaId,
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The UID of the pod, if the kubelet reports it.
    pub pod_uid: Option<String>,
    /// The name of the container.
    pub container: String,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        device_metrics::encode(&mut encoder, self)?;
        let build = [
            ("version", self.version),
            ("os", std::env::consts::OS),
            ("arch", std::env::consts::ARCH),
        ];
        catalog::BUILD_INFO.encode_gauges(&mut encoder, [(labels(&build), 1.0)])?;
        self.encode_resources(&mut encoder)?;
        self.encode_daemon(&mut encoder)
    }
}

impl Scrape {
    /// Writes what is known about each resource.
    fn encode_resources(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let resources = &self.readiness.resources;
        let ready = resources.iter().map(|resource| {
            (labels(&[("resource", &resource.name)]), f64::from(u8::from(resource.is_ready())))
        });
        catalog::RESOURCE_READY.encode_gauges(encoder, ready)?;
        let counted = self.metrics.resources();
        let allocations = counted
            .iter()
            .map(|(name, counts)| (labels(&[("resource", name)]), counts.allocations));
        catalog::ALLOCATIONS.encode_counters(encoder, allocations)?;
        let refusals = counted.iter().flat_map(|(name, counts)| {
            counts.refusals.iter().map(move |(reason, count)| {
                (labels(&[("resource", name), ("reason", reason)]), *count)
            })
        });
        catalog::REFUSALS.encode_counters(encoder, refusals)?;
        let durations = counted
            .iter()
            .map(|(name, counts)| (labels(&[("resource", name)]), counts.allocate_seconds.clone()));
        catalog::ALLOCATE_SECONDS.encode(encoder, durations)?;
        let registrations = resources.iter().flat_map(|resource| {
            resource.registrations.iter().map(|(cause, count)| {
                (labels(&[("resource", &resource.name), ("cause", cause)]), *count)
            })
        });
        catalog::REGISTRATIONS.encode_counters(encoder, registrations)?;
        let updates = counted
            .iter()
            .map(|(name, counts)| (labels(&[("resource", name)]), counts.list_updates));
        catalog::LIST_UPDATES.encode_counters(encoder, updates)
    }

    /// Writes what is known about the daemon.
    fn encode_daemon(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        catalog::DISCOVERY_SECONDS.encode_value(encoder, &self.metrics.discovery_seconds)?;
        catalog::DISCOVERY_FAILURES.encode_value(encoder, &self.metrics.discovery_failures)?;
        let reloads = [("applied", self.reloads.applied), ("rejected", self.reloads.rejected)]
            .map(|(result, count)| (labels(&[("result", result)]), count));
        catalog::RELOADS.encode_counters(encoder, reloads)?;
        let is_current = f64::from(u8::from(self.reloads.last_error.is_none()));
        catalog::LAST_RELOAD_SUCCESSFUL.encode_value(encoder, &ConstGauge::new(is_current))?;
        let dropped = ConstCounter::new(self.log_lines_dropped);
        catalog::LOG_LINES_DROPPED.encode_value(encoder, &dropped)?;
        if let Some((_, age)) = &self.telemetry {
            catalog::TELEMETRY_AGE.encode_value(encoder, &ConstGauge::new(age.as_secs_f64()))?;
        }
        let readings = self.readings.iter().map(|(source, reason, failures)| {
            (labels(&[("source", source), ("reason", reason)]), *failures)
        });
        catalog::READING_FAILURES.encode_counters(encoder, readings)
    }
}
