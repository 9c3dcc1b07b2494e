//! Allocates devices to containers: `allocateContainerResources` and `devicesToAllocate` of
//! `pkg/kubelet/cm/devicemanager/manager.go`, with the same error messages.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::timeout;
use tonic::Status;

use super::manager::{Endpoint, Ids, Manager};
use super::pods::{ContainerView, PodRequest};
use super::process::Process;
use crate::Transport;
use crate::v1beta1::{
    AllocateRequest, ContainerAllocateRequest, ContainerAllocateResponse,
    ContainerPreferredAllocationRequest, PreStartContainerRequest, PreferredAllocationRequest,
};

/// `KubeletPreStartContainerRPCTimeoutInSecs`.
const PRE_START_LIMIT: Duration = Duration::from_secs(30);

/// `allocateContainerResources` and `GetDeviceRunContainerOptions`: what the container of a pod is
/// started with.
///
/// # Errors
/// The kubelet's message.
pub(crate) async fn allocate_pod<T: Transport>(
    process: &Process<T>,
    pod: &PodRequest,
) -> Result<ContainerView, String> {
    let resources = process.with_manager_silently(|manager| {
        manager.free_inactive();
        manager.in_iteration_order(pod.resources.clone().into_iter().collect())
    });
    let mut answers = Vec::new();
    for (resource, count) in resources {
        if process.with_manager_silently(|manager| manager.healthy(&resource)).is_none() {
            continue;
        }
        let request = ResourceRequest { process, resource: &resource, count: count as usize };
        match request.allocate(&pod.name).await {
            Ok(allocated) => answers.push((resource, allocated)),
            Err(error) => {
                process.with_manager(Manager::count_allocated);
                return Err(error);
            }
        }
    }
    let answers = process.with_manager_silently(|manager| manager.in_iteration_order(answers));
    let mut container = ContainerView::default();
    for (resource, (ids, answer)) in answers {
        container.merge(answer);
        container.device_ids.insert(resource, ids.into_iter().collect());
    }
    Ok(container)
}

/// `callPreStartContainerIfNeeded` for each resource of a pod, of which `allocated` are the devices.
///
/// # Errors
/// The kubelet's message.
pub(crate) async fn pre_start<T: Transport>(
    process: &Process<T>,
    pod: &PodRequest,
    allocated: &BTreeMap<String, Vec<String>>,
) -> Result<(), String> {
    for resource in pod.resources.keys() {
        if process.with_manager_silently(|manager| manager.healthy(resource)).is_none() {
            continue;
        }
        let endpoint = process.with_manager_silently(|manager| manager.endpoint(resource))?;
        if !endpoint.options.pre_start_required {
            continue;
        }
        let devices_ids = allocated.get(resource).cloned().ok_or_else(|| {
            let pod = &pod.name;
            format!(
                "no devices found allocated in local cache for pod {pod}, container main, resource \
                 {resource}"
            )
        })?;
        let request = PreStartContainerRequest { devices_ids };
        let mut plugin = endpoint.running(resource)?;
        let started = timeout(PRE_START_LIMIT, plugin.pre_start_container(request)).await;
        let late = |_| Err(Status::deadline_exceeded("context deadline exceeded"));
        started.unwrap_or_else(late).map_err(|status| {
            format!("device plugin PreStartContainer rpc failed with err: {}", grpc_error(&status))
        })?;
    }
    Ok(())
}

/// The text of a gRPC error in Go (`status.Error`).
pub(crate) fn grpc_error(status: &Status) -> String {
    let code = match status.code() {
        tonic::Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    };
    format!("rpc error: code = {code} desc = {}", status.message())
}

/// The request of a container for one resource.
struct ResourceRequest<'a, T: Transport> {
    process: &'a Process<T>,
    resource: &'a str,
    count: usize,
}

impl<T: Transport> ResourceRequest<'_, T> {
    fn manager<R>(&self, access: impl FnOnce(&mut Manager) -> R) -> R {
        self.process.with_manager_silently(access)
    }

    /// Chooses devices, calls `Allocate` and stores which devices the pod has.
    async fn allocate(&self, pod: &str) -> Result<(Ids, ContainerAllocateResponse), String> {
        let ids = self.choose().await?;
        let endpoint = self.manager(|manager| manager.endpoint(self.resource))?;
        let mut plugin = endpoint.running(self.resource)?;
        let container = ContainerAllocateRequest { devices_ids: self.in_order(&ids) };
        let request = AllocateRequest { container_requests: vec![container] };
        // `startContainer` shows the description, without the code.
        let answer = plugin.allocate(request).await.map_err(|s| s.message().to_owned())?;
        let first = answer.into_inner().container_responses.into_iter().next();
        let answer = first.ok_or("no containers return in allocation response ")?;
        self.process.with_manager(|manager| {
            let of_pod = manager.allocations.entry(pod.to_owned()).or_default();
            of_pod.insert(self.resource.to_owned(), ids.clone());
        });
        Ok((ids, answer))
    }

    /// `devicesToAllocate`.
    async fn choose(&self) -> Result<Ids, String> {
        let (resource, needed) = (self.resource, self.count);
        let healthy = self
            .manager(|manager| manager.healthy(resource))
            .ok_or_else(|| format!("cannot allocate unregistered device {resource}"))?;
        if healthy.is_empty() {
            return Err(format!(
                "no healthy devices present; cannot allocate unhealthy devices {resource}"
            ));
        }
        let in_use = self.manager(|m| m.allocated.get(resource).cloned().unwrap_or_default());
        let available: Ids = healthy.difference(&in_use).cloned().collect();
        if available.len() < needed {
            return Err(format!(
                "requested number of devices unavailable for {resource}. Requested: {needed}, \
                 Available: {}",
                available.len()
            ));
        }
        let endpoint = self.manager(|manager| manager.endpoint(resource))?;
        let preferred = self.preferred(&endpoint, &available).await?;
        let mut chosen = Ids::new();
        self.take_from(&mut chosen, &preferred.intersection(&available).cloned().collect());
        self.take_from(&mut chosen, &available);
        Ok(chosen)
    }

    /// `allocateRemainingFrom`: moves devices from `from` to `chosen` until `chosen` is complete.
    fn take_from(&self, chosen: &mut Ids, from: &Ids) {
        let others = self.in_order(&from.difference(chosen).cloned().collect());
        chosen.extend(others.into_iter().take(self.count - chosen.len()));
        self.manager(|manager| {
            let allocated = manager.allocated.entry(self.resource.to_owned()).or_default();
            allocated.extend(chosen.iter().cloned());
        });
    }

    fn in_order(&self, ids: &Ids) -> Vec<String> {
        self.manager(|manager| manager.in_iteration_order(ids.iter().cloned().collect()))
    }

    /// `callGetPreferredAllocationIfAvailable`. The kubelet calls it even if there is no choice.
    async fn preferred(&self, endpoint: &Endpoint, available: &Ids) -> Result<Ids, String> {
        if !endpoint.options.get_preferred_allocation_available {
            return Ok(Ids::new());
        }
        let failed =
            |error| format!("device plugin GetPreferredAllocation rpc failed with err: {error}");
        let mut plugin = endpoint.running(self.resource).map_err(failed)?;
        let container = ContainerPreferredAllocationRequest {
            available_device_ids: self.in_order(available),
            must_include_device_ids: Vec::new(),
            allocation_size: i32::try_from(self.count).unwrap_or(i32::MAX),
        };
        let request = PreferredAllocationRequest { container_requests: vec![container] };
        let answer = plugin.get_preferred_allocation(request).await;
        let answer = answer.map_err(|status| failed(grpc_error(&status)))?;
        let first = answer.into_inner().container_responses.into_iter().next();
        Ok(first.map(|response| response.device_ids.into_iter().collect()).unwrap_or_default())
    }
}
