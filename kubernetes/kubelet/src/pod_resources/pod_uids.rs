//! Decodes the response of the kubelet's Pods API.
//!
//! Input: an encoded `v1alpha1.ListPodsResponse` (k8s.io/kubelet, pkg/apis/pods/v1alpha1), whose
//! elements are encoded `v1.Pod` objects. Output: the UID of each pod. The message is read in its
//! encoded form, because it has everything that Kubernetes knows of every pod.

use std::collections::HashMap;

use super::response::{ResponseError, fields, name};

/// How many pods a response may have. A kubelet runs some hundred at most.
const PODS: usize = 4096;

/// The tags of `ListPodsResponse`, `Pod` and `ObjectMeta`.
const POD: u32 = 1;
const POD_METADATA: u32 = 1;
const METADATA_NAME: u32 = 1;
const METADATA_NAMESPACE: u32 = 3;
const METADATA_UID: u32 = 5;

/// The UIDs of pods, by namespace and name. All are safe to print.
pub(super) type PodUids = HashMap<(String, String), String>;

/// Decodes a response.
///
/// # Errors
/// The message is not a response, or has more than a node can have.
pub(super) fn pod_uids(message: &[u8]) -> Result<PodUids, ResponseError> {
    let mut uids = PodUids::new();
    for pod in fields(message, POD) {
        if uids.len() == PODS {
            return Err(ResponseError::TooMany { what: "pods", limit: PODS });
        }
        for metadata in fields(pod?, POD_METADATA) {
            let metadata = metadata?;
            let namespace = name(metadata, METADATA_NAMESPACE, "the name of a namespace")?;
            let pod = name(metadata, METADATA_NAME, "the name of a pod")?;
            uids.insert((namespace, pod), name(metadata, METADATA_UID, "the UID of a pod")?);
        }
    }
    Ok(uids)
}

#[cfg(test)]
pub(super) mod tests {
    use prost::Message;

    use super::*;

    /// The messages as Kubernetes declares them.
    #[derive(Clone, PartialEq, Message)]
    struct ListPodsResponse {
        #[prost(bytes, repeated, tag = "1")]
        pods: Vec<Vec<u8>>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Pod {
        #[prost(message, optional, tag = "1")]
        metadata: Option<ObjectMeta>,
        #[prost(bytes, tag = "2")]
        spec: Vec<u8>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct ObjectMeta {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        generate_name: String,
        #[prost(string, tag = "3")]
        namespace: String,
        #[prost(string, tag = "5")]
        uid: String,
        #[prost(int64, tag = "7")]
        generation: i64,
    }

    /// A response with pods of the namespace `default`, by name and UID.
    pub(crate) fn response(pods: &[(&str, &str)]) -> Vec<u8> {
        let pod = |(name, uid): &(&str, &str)| {
            let metadata = ObjectMeta {
                name: (*name).to_owned(),
                generate_name: "generated-".to_owned(),
                namespace: "default".to_owned(),
                uid: (*uid).to_owned(),
                generation: 300,
            };
            Pod { metadata: Some(metadata), spec: vec![0xFF; 9] }.encode_to_vec()
        };
        ListPodsResponse { pods: pods.iter().map(pod).collect() }.encode_to_vec()
    }

    #[test]
    fn each_pod_has_its_uid() {
        let uids = pod_uids(&response(&[("render", "1-a"), ("train", "2\nb")])).unwrap();
        let uid = |pod: &str| uids[&("default".to_owned(), pod.to_owned())].clone();
        assert_eq!((uid("render"), uid("train")), ("1-a".to_owned(), "2\\nb".to_owned()));
        assert!(pod_uids(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_response_that_is_too_long_or_cut_off_is_refused() {
        let names: Vec<String> = (0..=PODS).map(|n| format!("pod-{n}")).collect();
        let pods: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "1")).collect();
        let refusal = |message: &[u8]| pod_uids(message).unwrap_err().to_string();
        assert_eq!(refusal(&response(&pods)), "more than 4096 pods");
        let whole = response(&[("render", "1")]);
        assert_eq!(refusal(&whole[..whole.len() - 1]), "invalid message");
        let long = "1".repeat(254);
        let text = "the UID of a pod has 254 bytes; Kubernetes permits 253";
        assert_eq!(refusal(&response(&[("render", &long)])), text);
    }
}
