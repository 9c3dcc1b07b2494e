//! The JSON document of `simulate`. The comments of the fields are its reference.

use std::collections::BTreeMap;

use device_plugin::testing::ContainerView;
use device_plugin::v1beta1::Device;
use devices::HostSnapshot;
use serde::Serialize;

use crate::simulate::host::Source;
use crate::simulate::report::{Report, SimulatedPod};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document<'a> {
    /// The host that is simulated.
    host: Host<'a>,
    /// What the node would advertise.
    resources: Vec<Resource<'a>>,
    /// What each pod would get, in the order in which the pods were admitted.
    pods: Vec<Pod<'a>>,
    /// What an administrator should know of the node, such as adapters that are not advertised and parts
    /// of the configuration without effect.
    notes: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Host<'a> {
    /// `windows`, or `linux-dxg` for Linux with `/dev/dxg`.
    platform: &'static str,
    /// The name of the product, such as `Microsoft Windows Server 2022 Datacenter`.
    product: Option<&'a str>,
    /// The build, such as `10.0.20348.1547`.
    build: Option<String>,
    /// How many adapters it has, advertised or not.
    adapters: usize,
    /// `inventory`, `gpus` for a host of `--gpu`, or `demonstration` for the recorded host that is
    /// simulated without both.
    source: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    /// The name of the resource.
    name: &'a str,
    /// How many replicas the node has.
    capacity: usize,
    /// How many of them are healthy.
    allocatable: usize,
    /// The replicas, in the order in which the kubelet gets them.
    devices: Vec<Replica<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replica<'a> {
    /// The ID that the kubelet gets: that of the device, a backslash, and the number of the replica.
    id: &'a str,
    /// `Healthy` or `Unhealthy`.
    health: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pod<'a> {
    /// The name of the pod.
    name: &'a str,
    /// The resource that its container requests; of several, the first.
    resource: &'a str,
    /// How many devices of that resource it requests.
    count: u32,
    /// Whether scheduler and kubelet accept the pod.
    admitted: bool,
    /// Why the pod is refused; empty if it is admitted.
    reason: &'a str,
    /// The replicas that are allocated to the container.
    device_ids: Vec<&'a String>,
    /// What the kubelet hands to the container runtime on Windows, after it has merged the answers of
    /// the plugin. Everything in it is empty if the pod is refused.
    container: Container<'a>,
    /// Which devices and files the container gets and why, and why others are left out.
    notes: Vec<String>,
    /// All requests. Only for a pod that requests several resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Vec<Request<'a>>>,
}

#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    /// The resource.
    resource: &'a str,
    /// How many devices of it.
    count: u32,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Container<'a> {
    /// The device entries. Windows supports one.
    devices: Vec<DeviceEntry<'a>>,
    /// The files that are mounted.
    mounts: Vec<MountEntry<'a>>,
    /// The environment variables.
    envs: BTreeMap<String, String>,
    /// The annotations.
    annotations: BTreeMap<String, String>,
    /// The names of CDI devices. Only if there are any.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    cdi_devices: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceEntry<'a> {
    /// The device: a location path, a device interface class, or a device file of Linux.
    host_path: &'a str,
    /// The path in the container; empty on Windows.
    container_path: &'a str,
    /// The permissions; without effect on Windows.
    permissions: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MountEntry<'a> {
    /// The file or folder of the host.
    host_path: &'a str,
    /// Its path in the container.
    container_path: &'a str,
    /// Whether the container can only read it.
    read_only: bool,
}

impl<'a> Document<'a> {
    pub(crate) fn of(report: &'a Report) -> Document<'a> {
        let HostSnapshot { host, adapters, .. } = &report.host.snapshot;
        let resources = report.resources.iter().map(|resource| Resource {
            name: &resource.name,
            capacity: resource.capacity,
            allocatable: resource.allocatable,
            devices: resource
                .devices
                .iter()
                .map(|Device { id, health, .. }| Replica { id, health })
                .collect(),
        });
        Document {
            host: Host {
                platform: host.platform.into(),
                product: host.product.as_deref(),
                build: host.build.map(|build| build.to_string()),
                adapters: adapters.len(),
                source: match report.host.source {
                    Source::Inventory(_) => "inventory",
                    Source::Gpus => "gpus",
                    Source::Demonstration => "demonstration",
                },
            },
            resources: resources.collect(),
            pods: report.pods.iter().map(Pod::of).collect(),
            notes: &report.notes,
        }
    }
}

impl<'a> Pod<'a> {
    fn of(simulated: &'a SimulatedPod) -> Pod<'a> {
        let all = simulated.pod.requests.iter();
        let requests: Vec<_> = all
            .map(|request| Request { resource: request.resource.as_str(), count: request.count })
            .collect();
        let Request { resource, count } = requests[0];
        Pod {
            name: &simulated.pod.name,
            resource,
            count,
            admitted: simulated.outcome.is_ok(),
            reason: simulated.outcome.as_ref().err().map_or("", String::as_str),
            device_ids: simulated.device_ids(),
            container: simulated.outcome.as_ref().map(Container::of).unwrap_or_default(),
            notes: simulated.explanation.notes.iter().map(ToString::to_string).collect(),
            requests: Some(requests).filter(|requests| requests.len() > 1),
        }
    }
}

impl<'a> Container<'a> {
    fn of(view: &'a ContainerView) -> Container<'a> {
        let devices = view.devices.iter().map(|device| DeviceEntry {
            host_path: &device.host_path,
            container_path: &device.container_path,
            permissions: &device.permissions,
        });
        let mounts = view.mounts.iter().map(|mount| MountEntry {
            host_path: &mount.host_path,
            container_path: &mount.container_path,
            read_only: mount.read_only,
        });
        Container {
            devices: devices.collect(),
            mounts: mounts.collect(),
            envs: view.envs.clone(),
            annotations: view.annotations.clone(),
            cdi_devices: &view.cdi_devices,
        }
    }
}
