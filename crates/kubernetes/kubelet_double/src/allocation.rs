//! Allocates devices to containers: `allocateContainerResources` and `devicesToAllocate` of
//! `pkg/kubelet/cm/devicemanager/manager.go`, with the same error messages.

use std::sync::MutexGuard;
use std::time::Duration;

use device_plugin::Transport;
use device_plugin::v1beta1::{
    AllocateRequest, ContainerAllocateRequest, ContainerAllocateResponse,
    ContainerPreferredAllocationRequest, PreStartContainerRequest, PreferredAllocationRequest,
};
use tokio::time::timeout;
use tonic::Status;

use crate::manager::{Allocation, DeviceIds, DeviceManager, PluginEndpoint};
use crate::pods::{ContainerRequest, ContainerView};
use crate::process::KubeletProcess;
use crate::registration::grpc_error;

/// `KubeletPreStartContainerRPCTimeoutInSecs`.
const PRE_START_LIMIT: Duration = Duration::from_secs(30);

/// `Allocate`: chooses and allocates the devices of a container, except for those that it has.
///
/// # Errors
/// The kubelet's message.
pub(crate) async fn allocate<T: Transport>(
    process: &KubeletProcess<T>,
    pod: &str,
    container: &ContainerRequest,
) -> Result<(), String> {
    process.manager().free_inactive();
    let requested = container.resources.iter().collect();
    let resources = process.manager().in_iteration_order(requested);
    for (resource, count) in resources {
        if !process.manager().lacks(pod, container, resource) {
            continue;
        }
        let request = ResourceRequest { process, pod, container, resource, count: *count as usize };
        if let Err(error) = request.allocate().await {
            process.with_manager(DeviceManager::count_allocated);
            return Err(error);
        }
    }
    process.manager().update_reusable(pod, container);
    Ok(())
}

/// `GetDeviceRunContainerOptions`: what a container is created with, each time that it starts.
///
/// # Errors
/// The kubelet's message.
pub(crate) async fn create_container<T: Transport>(
    process: &KubeletProcess<T>,
    pod: &str,
    container: &ContainerRequest,
) -> Result<ContainerView, String> {
    for resource in container.resources.keys() {
        if process.manager().is_device_plugin_resource(resource) {
            pre_start(process, pod, container, resource).await?;
        }
    }
    if container.resources.keys().any(|resource| process.manager().lacks(pod, container, resource))
    {
        allocate(process, pod, container).await?;
    }
    Ok(process.manager().container(pod, container))
}

/// `callPreStartContainerIfNeeded`.
async fn pre_start<T: Transport>(
    process: &KubeletProcess<T>,
    pod: &str,
    container: &ContainerRequest,
    resource: &str,
) -> Result<(), String> {
    let endpoint = process.manager().endpoint(resource)?;
    if !endpoint.options.pre_start_required {
        return Ok(());
    }
    let devices_ids = process.manager().ids(pod, container, resource).ok_or_else(|| {
        let container = &container.name;
        format!(
            "no devices found allocated in local cache for pod {pod}, container {container}, \
             resource {resource}"
        )
    })?;
    let request = PreStartContainerRequest { devices_ids };
    let mut plugin = endpoint.running(resource)?;
    let status = match timeout(PRE_START_LIMIT, plugin.pre_start_container(request)).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(status)) => status,
        Err(_) => Status::deadline_exceeded("context deadline exceeded"),
    };
    Err(format!("device plugin PreStartContainer rpc failed with err: {}", grpc_error(&status)))
}

/// The request of a container for one resource.
struct ResourceRequest<'a, T: Transport> {
    process: &'a KubeletProcess<T>,
    pod: &'a str,
    container: &'a ContainerRequest,
    resource: &'a str,
    count: usize,
}

impl<T: Transport> ResourceRequest<'_, T> {
    fn manager(&self) -> MutexGuard<'_, DeviceManager> {
        self.process.manager()
    }

    /// Chooses devices, calls `Allocate` and stores what the container has.
    async fn allocate(&self) -> Result<(), String> {
        let ids = self.choose().await?;
        let endpoint = self.manager().endpoint(self.resource)?;
        let answer = self.call(&endpoint, self.in_order(&ids)).await?;
        self.process.with_manager(|manager| {
            let allocation = Allocation { ids, answer };
            manager.insert_allocation(self.pod, self.container, self.resource, allocation);
        });
        Ok(())
    }

    async fn call(
        &self,
        endpoint: &PluginEndpoint,
        devices_ids: Vec<String>,
    ) -> Result<ContainerAllocateResponse, String> {
        let container_requests = vec![ContainerAllocateRequest { devices_ids }];
        let mut plugin = endpoint.running(self.resource)?;
        // `startContainer` shows the description, without the code.
        let answer = plugin
            .allocate(AllocateRequest { container_requests })
            .await
            .map_err(|status| status.message().to_owned())?;
        let first = answer.into_inner().container_responses.into_iter().next();
        first.ok_or("no containers return in allocation response ".to_owned())
    }

    /// `devicesToAllocate`.
    async fn choose(&self) -> Result<DeviceIds, String> {
        let resource = self.resource;
        let Some(healthy) = self.manager().healthy(resource) else {
            return Err(format!("cannot allocate unregistered device {resource}"));
        };
        if healthy.is_empty() {
            return Err(format!(
                "no healthy devices present; cannot allocate unhealthy devices {resource}"
            ));
        }
        let mut chosen = DeviceIds::new();
        let reusable = self.manager().reusable(self.pod, resource);
        self.take_from(&mut chosen, &reusable);
        if chosen.len() == self.count {
            return Ok(chosen);
        }
        let needed = self.count - chosen.len();
        let in_use = self.manager().allocated.get(resource).cloned().unwrap_or_default();
        let available: DeviceIds = healthy.difference(&in_use).cloned().collect();
        if available.len() < needed {
            return Err(format!(
                "requested number of devices unavailable for {resource}. Requested: {needed}, \
                 Available: {}",
                available.len()
            ));
        }
        let endpoint = self.manager().endpoint(resource)?;
        let preferred = self.preferred(&endpoint, &available, &chosen).await?;
        self.take_from(&mut chosen, &preferred.intersection(&available).cloned().collect());
        self.take_from(&mut chosen, &available);
        Ok(chosen)
    }

    /// `allocateRemainingFrom`: moves devices from `from` to `chosen` until `chosen` is complete.
    fn take_from(&self, chosen: &mut DeviceIds, from: &DeviceIds) {
        let others = self.in_order(&from.difference(chosen).cloned().collect());
        chosen.extend(others.into_iter().take(self.count - chosen.len()));
        let mut manager = self.manager();
        let allocated = manager.allocated.entry(self.resource.to_owned()).or_default();
        allocated.extend(chosen.iter().cloned());
    }

    fn in_order(&self, ids: &DeviceIds) -> Vec<String> {
        self.manager().in_iteration_order(ids.iter().cloned().collect())
    }

    /// `callGetPreferredAllocationIfAvailable`. The kubelet calls it even if there is no choice.
    async fn preferred(
        &self,
        endpoint: &PluginEndpoint,
        available: &DeviceIds,
        chosen: &DeviceIds,
    ) -> Result<DeviceIds, String> {
        if !endpoint.options.get_preferred_allocation_available {
            return Ok(DeviceIds::new());
        }
        let container = ContainerPreferredAllocationRequest {
            available_device_ids: self.in_order(&available.union(chosen).cloned().collect()),
            must_include_device_ids: self.in_order(chosen),
            allocation_size: i32::try_from(self.count).unwrap_or(i32::MAX),
        };
        let request = PreferredAllocationRequest { container_requests: vec![container] };
        let mut plugin = endpoint.running(self.resource).map_err(|e| preferred_failed(&e))?;
        let preferred = plugin
            .get_preferred_allocation(request)
            .await
            .map_err(|status| preferred_failed(&grpc_error(&status)))?;
        let first = preferred.into_inner().container_responses.into_iter().next();
        Ok(first.map(|response| response.device_ids.into_iter().collect()).unwrap_or_default())
    }
}

fn preferred_failed(error: &str) -> String {
    format!("device plugin GetPreferredAllocation rpc failed with err: {error}")
}
