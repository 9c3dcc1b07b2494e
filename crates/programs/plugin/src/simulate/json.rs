//! The JSON document of `simulate`. `docs/reference/json.md` describes each key, and a
//! test compares that page with what the command prints.

use std::borrow::Cow;
use std::collections::BTreeMap;

use device_plugin::v1beta1::Device;
use host::HostSnapshot;
use kubelet_double::ContainerView;
use report::Labels;
use serde::Serialize;

use crate::simulate::result::{Report, SimulatedPod};
use crate::simulate::simulated_host::Source;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document<'a> {
    host: Host<'a>,
    resources: Vec<Resource<'a>>,
    pods: Vec<Pod<'a>>,
    labels: &'a Labels,
    conditions: Vec<Condition<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Host<'a> {
    platform: &'static str,
    product: Option<&'a str>,
    build: Option<String>,
    adapters: usize,
    source: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    name: &'a str,
    capacity: usize,
    allocatable: usize,
    devices: Vec<Replica<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replica<'a> {
    id: &'a str,
    health: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pod<'a> {
    name: &'a str,
    resource: &'a str,
    count: u32,
    admitted: bool,
    reason: &'a str,
    device_ids: Vec<&'a String>,
    container: Container<'a>,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Vec<Request<'a>>>,
}

#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    resource: &'a str,
    count: u32,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Container<'a> {
    devices: Vec<DeviceEntry<'a>>,
    mounts: Vec<MountEntry<'a>>,
    envs: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceEntry<'a> {
    host_path: &'a str,
    container_path: &'a str,
    permissions: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MountEntry<'a> {
    host_path: &'a str,
    container_path: &'a str,
    read_only: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) status: String,
    pub(crate) reason: &'static str,
    pub(crate) message: Cow<'a, str>,
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
                    Source::MadeUp => "gpus",
                    Source::Demonstration => "demonstration",
                },
            },
            resources: resources.collect(),
            pods: report.pods.iter().map(Pod::of).collect(),
            labels: &report.labels,
            conditions: report.conditions.iter().map(Condition::of).collect(),
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
        }
    }
}

impl<'a> Condition<'a> {
    pub(crate) fn of(condition: &'a report::Condition) -> Condition<'a> {
        Condition {
            kind: condition.kind.name(),
            status: condition.status.to_string(),
            reason: condition.reason,
            message: condition.message.own().into(),
        }
    }
}
