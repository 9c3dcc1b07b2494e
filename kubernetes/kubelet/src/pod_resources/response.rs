//! Decodes the kubelet's response.
//!
//! Input: an encoded `v1.ListPodResourcesResponse` (k8s.io/kubelet, pkg/apis/podresources/v1).
//! Output: the containers that hold devices. The message is read in its encoded form, because it
//! also describes every other container, with its CPUs and its memory, and because the process
//! that listens on the endpoint may not be a kubelet.

use std::sync::Arc;

use printable::printable;

use crate::message_fields::{FieldError, next_field};

/// How many containers with devices a response may have. A kubelet runs some hundred pods at most.
const CONTAINERS: usize = 4096;

/// How many device IDs a response may have: several lists of maximum size.
const IDS: usize = 256 * 1024;

/// How long the name of a namespace, pod or container may be, in bytes (RFC 1123 subdomain).
const NAME_BYTES: usize = 253;

/// The tags of `ListPodResourcesResponse`, `PodResources`, `ContainerResources` and
/// `ContainerDevices`.
const POD: u32 = 1;
const POD_NAME: u32 = 1;
const POD_NAMESPACE: u32 = 2;
const POD_CONTAINER: u32 = 3;
const CONTAINER_NAME: u32 = 1;
const CONTAINER_DEVICES: u32 = 2;
const DEVICES_RESOURCE: u32 = 1;
const DEVICES_ID: u32 = 2;

/// A container that holds devices. Its names are safe to print.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Holder {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The name of the container in its pod.
    pub container: String,
}

/// Devices of one resource that one container holds. A container can have several assignments of
/// the same resource: kubelets report each device separately.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// The container.
    pub holder: Arc<Holder>,
    /// The name of the extended resource, as the kubelet sent it: to compare, not to print.
    pub resource: String,
    /// The device IDs, as the kubelet sent them: to compare, not to print.
    pub device_ids: Vec<String>,
}

/// Why a response cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResponseError {
    /// It is not an encoded message.
    #[error("invalid message")]
    Field(#[from] FieldError),
    /// A text in it is not UTF-8.
    #[error("{0} is not valid UTF-8")]
    NotUtf8(&'static str),
    /// A name in it is longer than Kubernetes permits.
    #[error("{what} has {length} bytes; Kubernetes permits {NAME_BYTES}")]
    LongName {
        /// Which name.
        what: &'static str,
        /// Its length, in bytes.
        length: usize,
    },
    /// It has more elements than a node can have.
    #[error("more than {limit} {what}")]
    TooMany {
        /// Which elements.
        what: &'static str,
        /// How many are accepted.
        limit: usize,
    },
}

/// Decodes a response, and returns the assignments in its order.
///
/// # Errors
/// The message is not a response, or has more than a node can have.
pub fn assignments(message: &[u8]) -> Result<Vec<Assignment>, ResponseError> {
    let mut decoder = Decoder { assignments: Vec::new(), containers: 0, ids: 0 };
    for pod in fields(message, POD) {
        decoder.pod(pod?)?;
    }
    Ok(decoder.assignments)
}

struct Decoder {
    assignments: Vec<Assignment>,
    containers: usize,
    ids: usize,
}

impl Decoder {
    fn pod(&mut self, pod: &[u8]) -> Result<(), ResponseError> {
        // Read once, however many containers the pod has.
        let mut names: Option<(String, String)> = None;
        for container in fields(pod, POD_CONTAINER) {
            let container = container?;
            if fields(container, CONTAINER_DEVICES).next().is_none() {
                continue;
            }
            self.containers += 1;
            if self.containers > CONTAINERS {
                return Err(ResponseError::TooMany {
                    what: "containers with devices",
                    limit: CONTAINERS,
                });
            }
            let (namespace, pod) = match &names {
                Some(names) => names.clone(),
                None => names.insert(pod_names(pod)?).clone(),
            };
            let container_name = name(container, CONTAINER_NAME, "the name of a container")?;
            let holder = Arc::new(Holder { namespace, pod, container: container_name });
            for devices in fields(container, CONTAINER_DEVICES) {
                self.devices(&holder, devices?)?;
            }
        }
        Ok(())
    }

    fn devices(&mut self, holder: &Arc<Holder>, devices: &[u8]) -> Result<(), ResponseError> {
        let resource = text(devices, DEVICES_RESOURCE, "the name of a resource")?.to_owned();
        let mut device_ids = Vec::new();
        for id in fields(devices, DEVICES_ID) {
            self.ids += 1;
            if self.ids > IDS {
                return Err(ResponseError::TooMany { what: "device IDs", limit: IDS });
            }
            device_ids.push(utf8(id?, "a device ID")?.to_owned());
        }
        if !device_ids.is_empty() {
            self.assignments.push(Assignment { holder: Arc::clone(holder), resource, device_ids });
        }
        Ok(())
    }
}

/// The names of a pod's namespace and of the pod.
fn pod_names(pod: &[u8]) -> Result<(String, String), ResponseError> {
    let namespace = name(pod, POD_NAMESPACE, "the name of a namespace")?;
    Ok((namespace, name(pod, POD_NAME, "the name of a pod")?))
}

/// The fields of a message that have a tag. Ends after an error.
pub(super) fn fields(
    mut message: &[u8],
    wanted: u32,
) -> impl Iterator<Item = Result<&[u8], FieldError>> {
    std::iter::from_fn(move || {
        loop {
            match next_field(&mut message) {
                Ok(Some((tag, field))) if tag == wanted => return Some(Ok(field)),
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => {
                    message = &[];
                    return Some(Err(error));
                }
            }
        }
    })
}

/// The name in a field, safe to print.
pub(super) fn name(message: &[u8], tag: u32, what: &'static str) -> Result<String, ResponseError> {
    let name = text(message, tag, what)?;
    if name.len() > NAME_BYTES {
        return Err(ResponseError::LongName { what, length: name.len() });
    }
    Ok(printable(name).into_owned())
}

/// The text of a field. The last one counts, and a missing one is empty, as in every protobuf
/// message.
fn text<'a>(message: &'a [u8], tag: u32, what: &'static str) -> Result<&'a str, ResponseError> {
    let mut value: &[u8] = &[];
    for field in fields(message, tag) {
        value = field?;
    }
    utf8(value, what)
}

fn utf8<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, ResponseError> {
    std::str::from_utf8(bytes).map_err(|_| ResponseError::NotUtf8(what))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    /// The messages as Kubernetes declares them, for the tests of this module's parent.
    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct ListPodResourcesResponse {
        #[prost(message, repeated, tag = "1")]
        pub(crate) pod_resources: Vec<PodResources>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct PodResources {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        namespace: String,
        #[prost(message, repeated, tag = "3")]
        containers: Vec<ContainerResources>,
        #[prost(int64, repeated, tag = "4")]
        cpu_ids: Vec<i64>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct ContainerResources {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(message, repeated, tag = "2")]
        devices: Vec<ContainerDevices>,
        #[prost(int64, repeated, tag = "3")]
        cpu_ids: Vec<i64>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct ContainerDevices {
        #[prost(string, tag = "1")]
        resource_name: String,
        #[prost(string, repeated, tag = "2")]
        device_ids: Vec<String>,
        #[prost(message, optional, tag = "3")]
        topology: Option<TopologyInfo>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct TopologyInfo {
        #[prost(int64, repeated, tag = "1")]
        nodes: Vec<i64>,
    }

    /// A pod in namespace `default` whose container `main` holds devices, each reported on its
    /// own, beside a container without devices.
    pub(crate) fn pod(name: &str, resource: &str, ids: &[&str]) -> PodResources {
        let device = |id: &&str| ContainerDevices {
            resource_name: resource.to_owned(),
            device_ids: vec![(*id).to_owned()],
            topology: Some(TopologyInfo { nodes: vec![0] }),
        };
        let container = |name: &str, devices| ContainerResources {
            name: name.to_owned(),
            devices,
            cpu_ids: vec![7, 300],
        };
        PodResources {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            containers: vec![
                container("sidecar", Vec::new()),
                container("main", ids.iter().map(device).collect()),
            ],
            cpu_ids: vec![1 << 40],
        }
    }

    pub(crate) fn response(pods: Vec<PodResources>) -> Vec<u8> {
        ListPodResourcesResponse { pod_resources: pods }.encode_to_vec()
    }

    fn refusal(pods: Vec<PodResources>) -> String {
        assignments(&response(pods)).unwrap_err().to_string()
    }

    #[test]
    fn containers_with_devices_are_returned_and_others_are_not() {
        let pods = vec![
            pod("idle", "example.com/gpu", &[]),
            pod("render", "example.com/gpu", &[r"PCI\VEN_10DE\3\1", r"PCI\VEN_10DE\3\0"]),
        ];
        let found = assignments(&response(pods)).unwrap();
        let ids: Vec<_> =
            found.iter().map(|a| (&*a.holder.pod, &*a.resource, &a.device_ids[..])).collect();
        let one = |id: &str| vec![id.to_owned()];
        let (first, second) = (one(r"PCI\VEN_10DE\3\1"), one(r"PCI\VEN_10DE\3\0"));
        assert_eq!(
            ids,
            [("render", "example.com/gpu", &first[..]), ("render", "example.com/gpu", &second[..])]
        );
        assert_eq!((&*found[0].holder.namespace, &*found[0].holder.container), ("default", "main"));
        assert!(assignments(&[]).unwrap().is_empty());
    }

    #[test]
    fn names_are_safe_to_print_and_limited() {
        let forged = assignments(&response(vec![pod("a\nERROR\u{202e}", "r", &["1"])])).unwrap();
        assert_eq!(forged[0].holder.pod, r"a\nERROR\u{202e}");
        assert_eq!(
            refusal(vec![pod(&"x".repeat(254), "r", &["1"])]),
            "the name of a pod has 254 bytes; Kubernetes permits 253"
        );
    }

    /// Two bytes on the wire must not become hundreds in memory, over and over.
    #[test]
    fn more_elements_than_a_node_can_have_are_refused() {
        let mut many = pod("x", "r", &["1"]);
        many.containers = vec![many.containers[1].clone(); CONTAINERS + 1];
        assert_eq!(refusal(vec![many]), "more than 4096 containers with devices");
        let mut many = pod("x", "r", &["1"]);
        many.containers[1].devices[0].device_ids = vec![String::new(); IDS + 1];
        assert_eq!(refusal(vec![many]), "more than 262144 device IDs");
    }

    #[test]
    fn a_response_that_is_cut_off_or_not_text_is_refused() {
        let whole = response(vec![pod("render", "example.com/gpu", &["1"])]);
        let error = assignments(&whole[..whole.len() - 1]).unwrap_err();
        assert_eq!(error, ResponseError::Field(FieldError::Incomplete));
        let position = whole.windows(6).position(|bytes| bytes == b"render").unwrap();
        let mut broken = whole;
        broken[position] = 0xFF;
        assert_eq!(
            assignments(&broken).unwrap_err().to_string(),
            "the name of a pod is not valid UTF-8"
        );
    }

    proptest! {
        /// What prost decodes is decoded to the same assignments, and nothing panics.
        #[test]
        fn any_bytes_are_decoded_as_prost_does(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            compare(&bytes)?;
        }

        #[test]
        fn changed_responses_are_decoded_as_prost_does(position: prop::sample::Index, byte: u8) {
            let mut bytes = response(vec![pod("render", "r", &["1", "2"]), pod("train", "r", &["3"])]);
            let position = position.index(bytes.len());
            bytes[position] = byte;
            compare(&bytes)?;
        }
    }

    fn compare(bytes: &[u8]) -> Result<(), TestCaseError> {
        let (Ok(found), Ok(decoded)) =
            (assignments(bytes), ListPodResourcesResponse::decode(bytes))
        else {
            return Ok(());
        };
        let mut expected = Vec::new();
        for pod in &decoded.pod_resources {
            for container in &pod.containers {
                let holder = Arc::new(Holder {
                    namespace: printable(&pod.namespace).into_owned(),
                    pod: printable(&pod.name).into_owned(),
                    container: printable(&container.name).into_owned(),
                });
                for devices in container.devices.iter().filter(|d| !d.device_ids.is_empty()) {
                    expected.push(Assignment {
                        holder: Arc::clone(&holder),
                        resource: devices.resource_name.clone(),
                        device_ids: devices.device_ids.clone(),
                    });
                }
            }
        }
        prop_assert_eq!(found, expected);
        Ok(())
    }
}
