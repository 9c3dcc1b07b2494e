//! The node object of `simulate --output node`, as a YAML manifest. A cluster in which KWOK runs
//! (kwok.sigs.k8s.io) takes it for a node, so that the scheduler and autoscalers of the cluster can
//! be tried with the devices of the simulated host.

use std::borrow::Cow;
use std::collections::BTreeMap;

use command_line::Failure;
use host::HostBuild;
use host::printable::{printable, printable_line};
use serde::Serialize;

use crate::simulate::json::Condition;
use crate::simulate::result::Report;

const NAME: &str = "windows-gpu-0";
/// By this annotation, KWOK knows the nodes that it manages (its option
/// `--manage-nodes-with-annotation-selector`).
const KWOK: (&str, &str) = ("kwok.x-k8s.io/node", "fake");
/// What else a node has: processors and memory of a small GPU instance, and the kubelet's default
/// for `maxPods` (`KubeletConfiguration`). Inventories have none of it.
const OTHER_RESOURCES: [(&str, &str); 3] = [("cpu", "8"), ("memory", "32Gi"), ("pods", "110")];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Node<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    status: Status<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'static str,
    annotations: BTreeMap<&'static str, &'static str>,
    labels: BTreeMap<&'a str, Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    capacity: BTreeMap<&'a str, String>,
    allocatable: BTreeMap<&'a str, String>,
    conditions: Vec<Condition<'a>>,
    node_info: NodeInfo<'a>,
}

/// Every field of the API's `NodeSystemInfo` that is required. What a host does not have is empty.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeInfo<'a> {
    architecture: &'static str,
    #[serde(rename = "bootID")]
    boot_id: &'static str,
    container_runtime_version: &'static str,
    kernel_version: String,
    kube_proxy_version: &'static str,
    kubelet_version: &'static str,
    #[serde(rename = "machineID")]
    machine_id: &'static str,
    operating_system: &'static str,
    os_image: Cow<'a, str>,
    #[serde(rename = "systemUUID")]
    system_uuid: &'static str,
}

/// The manifest, a YAML document of its own, so that several can follow one another. Notes are
/// comments at the top.
pub(crate) fn manifest(report: &Report) -> Result<String, Failure> {
    let notes = report.notes.iter().map(|note| format!("# note: {}\n", printable_line(note)));
    let hints = report.hints.iter().map(|hint| format!("# hint: {}\n", printable(hint)));
    let comments: String = notes.chain(hints).collect();
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let node = serde_saphyr::to_string_with_options(&Node::of(report), options);
    Ok(["---\n", &comments, &node.map_err(Failure::runtime)?].concat())
}

impl<'a> Node<'a> {
    fn of(report: &'a Report) -> Node<'a> {
        let host = &report.host.snapshot.host;
        let resources = |number: fn(&kubelet_double::ResourceView) -> usize| {
            let devices = report.resources.iter();
            let devices = devices.map(move |view| (view.name.as_str(), number(view).to_string()));
            let others = OTHER_RESOURCES.iter().map(|(name, n)| (*name, (*n).to_owned()));
            others.chain(devices).collect()
        };
        let conditions = report.conditions.iter().map(|condition| Condition {
            message: printable(condition.message.own()),
            ..Condition::of(condition)
        });
        Node {
            api_version: "v1",
            kind: "Node",
            metadata: Metadata {
                name: NAME,
                annotations: BTreeMap::from([KWOK]),
                labels: labels(report, host.build),
            },
            status: Status {
                capacity: resources(|view| view.capacity),
                allocatable: resources(|view| view.allocatable),
                // KWOK adds `Ready`, as the kubelet does.
                conditions: conditions.collect(),
                node_info: NodeInfo {
                    architecture: "amd64",
                    boot_id: "",
                    container_runtime_version: "",
                    // As the kubelet on Windows reports it.
                    kernel_version: host.build.map(|build| build.to_string()).unwrap_or_default(),
                    kube_proxy_version: "",
                    kubelet_version: "",
                    machine_id: "",
                    operating_system: "windows",
                    os_image: printable(host.product.as_deref().unwrap_or_default()),
                    system_uuid: "",
                },
            },
        }
    }
}

/// The labels of the kubelet, and those of `directx-feature-discovery`.
fn labels(report: &Report, build: Option<HostBuild>) -> BTreeMap<&str, Cow<'_, str>> {
    let own = report.labels.iter().map(|(name, value)| (name.as_str(), value.as_str().into()));
    let mut labels: BTreeMap<&str, Cow<'_, str>> = own.collect();
    labels.insert("kubernetes.io/arch", "amd64".into());
    labels.insert("kubernetes.io/hostname", NAME.into());
    labels.insert("kubernetes.io/os", "windows".into());
    if let Some(HostBuild { major, minor, build, .. }) = build {
        let build = format!("{major}.{minor}.{build}");
        labels.insert("node.kubernetes.io/windows-build", build.into());
    }
    labels
}
