//! What `/metrics` shows: the metrics of the daemon, and what is known of the devices at the
//! moment of a scrape.

use std::collections::BTreeMap;

use kubelet::{Readiness, ResourceState};
use metrics::{Format, ReloadCounts, Scrape, render};

use crate::log_queue;
use crate::node_devices::PublishedDevices;

/// Where the values of a scrape come from.
pub(crate) struct ScrapeSources {
    pub(crate) devices: PublishedDevices,
    /// The name of the node.
    pub(crate) host_name: String,
}

impl ScrapeSources {
    /// The text of a scrape.
    pub(crate) fn text(&self, readiness: &Readiness, format: Format) -> String {
        let devices = self.devices.set();
        let resource = |r: &kubelet::ResourceReadiness| {
            let delivered = r.state == ResourceState::ListDelivered && r.pending.is_none();
            (r.name.clone(), delivered)
        };
        let resources: Vec<_> = readiness.resources.iter().map(resource).collect();
        let scrape = Scrape {
            host_name: &self.host_name,
            version: env!("CARGO_PKG_VERSION"),
            devices: &devices,
            telemetry: &BTreeMap::new(),
            holders: None,
            processes: &[],
            resources: &resources,
            registrations: &[],
            reloads: ReloadCounts { applied: 0, rejected: 0, current: true },
            log_lines_dropped: log_queue::dropped_lines(),
            readings: &[],
        };
        render(self.devices.metrics(), &scrape, format)
    }
}

/// The name of the node: `NODE_NAME`, which manifests set, otherwise the computer's name.
pub(crate) fn host_name() -> String {
    let names = ["NODE_NAME", "COMPUTERNAME", "HOSTNAME"];
    let name = names.into_iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty())
        .or_else(|| {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
            Some(name.trim().to_owned())
        })
        .unwrap_or_default()
}
