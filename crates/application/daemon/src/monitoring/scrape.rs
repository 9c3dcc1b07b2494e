//! What `/metrics` shows: the metrics of the daemon, and what is known of the devices at the
//! moment of a scrape.

use std::collections::HashSet;

use device_plugin::Readiness;
use device_plugin::pod_resources::{Attribution, PodAttribution};
use devices::DeviceSet;
use host::{PnpId, ReplicaId};
use tokio::runtime::Handle;
use tokio::sync::watch;
use win32::container_processes::ContainerName;

use crate::configuration::ReloadStatus;
use crate::metrics::{Holder, Scrape};
use crate::node_devices::published_devices::PublishedDevices;
use crate::readers::container_processes::ContainerProcesses;
use crate::readers::telemetry::DeviceTelemetry;
use process::logging;
use process::metrics::render;

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
    pub(crate) pods: PodAttribution,
    pub(crate) processes: ContainerProcesses,
    /// What the devices do.
    pub(crate) telemetry: DeviceTelemetry,
}

impl Sources {
    /// The text of a scrape. Waits for the kubelet and the host, at most half a second each.
    pub(crate) async fn text(&self) -> String {
        let pods = self.pods.current().await.ok();
        let devices = self.devices.set();
        let holders = pods.as_deref().map(|pods| holders(pods, &devices)).unwrap_or_default();
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
            version: devices::VERSION,
            devices,
            telemetry,
            holders,
            processes,
            readiness,
            reloads,
            log_lines_dropped: logging::dropped_lines(),
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

/// The replicas of the devices in `set` that containers hold. A container keeps a device that it
/// got under the earlier name of a resource.
fn holders(pods: &Attribution, set: &DeviceSet) -> Vec<Holder> {
    let listed: HashSet<&PnpId> = set.entries().map(|entry| &entry.device.id).collect();
    pods.iter()
        .filter_map(|(resource, replica, holder)| {
            let replica = ReplicaId::parse(replica)?;
            listed.contains(&replica.device).then(|| Holder {
                resource: resource.to_owned(),
                replica,
                namespace: holder.namespace.clone(),
                pod: holder.pod.clone(),
                pod_uid: pods.pod_uid(holder).map(str::to_owned),
                container: holder.container.clone(),
            })
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use device_plugin::pod_resources;
    use devices::Moment;

    use super::*;
    use crate::node_devices::tests::{catalog, two_gpus};

    /// A container keeps the device that it got before the resource had another name.
    #[test]
    fn a_device_is_held_by_whoever_has_it_under_any_name() {
        let set = DeviceSet::next(None, catalog().offer(&two_gpus()), Moment::default());
        let id = &set.resources[0].entries()[0].device.id;
        let replica = ReplicaId { device: id.clone(), number: 1 };
        let found = |resource: &str, replica: &str| {
            let [namespace, pod, container] = ["default", "render", "main"].map(str::to_owned);
            let holder = Arc::new(pod_resources::Holder { namespace, pod, container });
            let mut attribution = Attribution::default();
            attribution.insert(resource, replica.to_owned(), holder);
            let holders = holders(&attribution, &set);
            holders.into_iter().map(|holder| (holder.resource, holder.replica)).collect::<Vec<_>>()
        };
        let of_device = replica.to_string();
        for resource in ["directx.microsoft.com/display", "example.com/earlier"] {
            assert_eq!(found(resource, &of_device), [(resource.to_owned(), replica.clone())]);
        }
        for other in ["GPU-1", r"PCI\VEN_1002\1\0"] {
            assert_eq!(found("example.com/gpu", other), []);
        }
    }
}
