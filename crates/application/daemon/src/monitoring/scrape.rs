//! What `/metrics` shows: the metrics of the daemon, and what is known of the devices at the
//! moment of a scrape.

use std::collections::HashSet;
use std::sync::Arc;

use device_plugin::Readiness;
use device_plugin::pod_resources::{Attribution, PodAttribution};
use tokio::runtime::Handle;
use tokio::sync::watch;
use win32::container_processes::ContainerName;

use crate::configuration::ReloadStatus;
use crate::host::container_processes::ContainerProcesses;
use crate::host::telemetry::DeviceTelemetry;
use crate::logging::output;
use crate::metrics::{Holder, Scrape, render};
use crate::node_devices::published_devices::PublishedDevices;

/// Where the values of a scrape and of the probes come from.
pub(crate) struct Sources {
    /// The event loop that serves the kubelet.
    pub(crate) event_loop: Handle,
    pub(crate) readiness: watch::Receiver<Readiness>,
    pub(crate) devices: PublishedDevices,
    pub(crate) reloads: watch::Receiver<ReloadStatus>,
    /// The name of the node.
    pub(crate) host_name: String,
    /// Who holds the devices.
    pub(crate) pods: Arc<PodAttribution>,
    pub(crate) processes: ContainerProcesses,
    /// What the devices do.
    pub(crate) telemetry: DeviceTelemetry,
}

impl Sources {
    /// The text of a scrape. Waits for the kubelet and the host, at most half a second each.
    pub(crate) async fn text(&self) -> String {
        let pods = self.pods.current(self.devices.last_allocation()).await.ok();
        let devices = self.devices.set();
        let own = devices.resources.iter().map(|resource| resource.spec.name.as_str()).collect();
        let holders = pods.as_deref().map(|pods| holders(pods, &own)).unwrap_or_default();
        let containers = holders.iter().map(|holder| ContainerName {
            namespace: holder.namespace.clone(),
            pod: holder.pod.clone(),
            container: holder.container.clone(),
        });
        let (processes, telemetry) = tokio::join!(
            self.processes.current(containers.collect()),
            self.telemetry.get(devices.luids().into_iter().collect()),
        );
        let reloads = self.reloads.borrow().clone();
        let readiness = self.readiness.borrow().clone();
        render(Scrape {
            metrics: self.devices.metrics.clone(),
            host_name: self.host_name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            devices,
            telemetry,
            holders,
            processes,
            readiness,
            reloads,
            log_lines_dropped: output::dropped_lines(),
            readings: self.readings().await,
        })
    }

    /// How often the kubelet, the host and the drivers did not answer.
    async fn readings(&self) -> Vec<(&'static str, &'static str, u64)> {
        let pods = self.pods.failures().await;
        let processes = self.processes.failures();
        let telemetry = self.telemetry.failures();
        pods.into_iter()
            .map(|(reason, failures)| ("pod_resources", reason.as_str(), failures))
            .chain(processes.map(|(reason, failures)| ("processes", reason, failures)))
            .chain(telemetry.map(|(reason, failures)| ("telemetry", reason, failures)))
            .collect()
    }
}

/// The replicas of `own` resources that containers hold.
fn holders(pods: &Attribution, own: &HashSet<&str>) -> Vec<Holder> {
    pods.iter()
        .filter(|(resource, ..)| own.contains(resource))
        .map(|(resource, replica, holder)| Holder {
            resource: resource.to_owned(),
            replica: replica.to_owned(),
            namespace: holder.namespace.clone(),
            pod: holder.pod.clone(),
            pod_uid: pods.pod_uid(holder).map(str::to_owned),
            container: holder.container.clone(),
        })
        .collect()
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
