//! The calls of the kubelet that return every pod of the node: with their devices, and with their
//! UIDs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::Channel;

use super::attribution::{Attribution, Holder, PodUids};
use super::endpoint;
use super::error::PodResourcesError;
use super::v1::pod_resources_lister_client::PodResourcesListerClient;
use super::v1::{
    ContainerDevices, ContainerResources, ListPodResourcesRequest, ListPodResourcesResponse,
};
use super::v1alpha1::ListPodsRequest;
use super::v1alpha1::pods_client::PodsClient;
use crate::connection;
use crate::text::printable;

/// How large a response may be, in bytes. Clients of Kubernetes accept as much
/// (`defaultPodResourcesMaxSize` in `test/e2e_node/util.go`). A node with 250 pods
/// needs less than 100 KiB.
const RESPONSE_LIMIT: usize = 16 * 1024 * 1024;

/// The devices of all containers of the kubelet's node. Connecting and answering may take `limit`
/// together.
///
/// # Errors
/// The endpoint is missing or refuses the call, or the kubelet does not answer in time, or its
/// response is not valid.
pub async fn list(endpoint: &Path, limit: Duration) -> Result<Attribution, PodResourcesError> {
    let call = async {
        let channel = connect(endpoint).await?;
        let answer = PodResourcesListerClient::new(channel)
            .max_decoding_message_size(RESPONSE_LIMIT)
            .list(ListPodResourcesRequest {})
            .await;
        Ok(attribution(answer.map_err(|status| PodResourcesError::of_call(&status))?.into_inner()))
    };
    timeout(limit, call).await.map_err(|_| PodResourcesError::timeout(limit))?
}

/// The UIDs of all pods of the kubelet's node, from its Pods API.
///
/// # Errors
/// As for [`list()`].
pub(super) async fn list_pod_uids(
    endpoint: &Path,
    limit: Duration,
) -> Result<PodUids, PodResourcesError> {
    let call = async {
        let channel = connect(endpoint).await?;
        let answer = PodsClient::new(channel)
            .max_decoding_message_size(RESPONSE_LIMIT)
            .list_pods(ListPodsRequest {})
            .await;
        let pods = answer.map_err(|status| PodResourcesError::of_call(&status))?.into_inner().pods;
        let uids = pods
            .into_iter()
            .filter_map(|pod| pod.metadata)
            .map(|pod| ((printable(&pod.namespace), printable(&pod.name)), printable(&pod.uid)));
        Ok(uids.collect())
    };
    timeout(limit, call).await.map_err(|_| PodResourcesError::timeout(limit))?
}

async fn connect(endpoint: &Path) -> Result<Channel, PodResourcesError> {
    let io = endpoint::connect(endpoint)
        .await
        .map_err(|error| PodResourcesError::of_connect(endpoint, &error))?;
    connection::connect(io).await.map_err(|cause| PodResourcesError::lost(&cause))
}

fn attribution(response: ListPodResourcesResponse) -> Attribution {
    let mut attribution = Attribution::default();
    for pod in response.pod_resources {
        let namespace = printable(&pod.namespace);
        let name = printable(&pod.name);
        for ContainerResources { name: container, devices } in pod.containers {
            let holder = Arc::new(Holder {
                namespace: namespace.clone(),
                pod: name.clone(),
                container: printable(&container),
            });
            for ContainerDevices { resource_name, device_ids } in devices {
                for id in device_ids {
                    attribution.insert(&resource_name, id, Arc::clone(&holder));
                }
            }
        }
    }
    attribution
}

#[cfg(test)]
mod tests;
