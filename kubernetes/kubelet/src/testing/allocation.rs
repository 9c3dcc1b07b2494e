//! Allocates devices to containers: `allocateContainerResources` and `devicesToAllocate` of
//! `pkg/kubelet/cm/devicemanager/manager.go`, with the same error messages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::grpc_error::grpc_error;
use super::host::Host;
use super::manager::{Allocation, ContainerAllocations, Endpoint, Ids};
use super::merging::merge;
use super::pods::{ContainerKind, ContainerRequest, ContainerView, PodRequest};
use super::process::Process;
use crate::v1beta1::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest,
    PreStartContainerRequest, PreferredAllocationRequest,
};

/// `KubeletPreStartContainerRPCTimeoutInSecs`.
const PRE_START_LIMIT: Duration = Duration::from_secs(30);

/// Devices of completed init containers, which later containers can reuse.
pub(crate) type Reusable = BTreeMap<String, Ids>;

/// `Allocate`, for every container of a pod.
pub(crate) async fn allocate_pod<T: Host>(
    process: &Arc<Process<T>>,
    pod: &PodRequest,
) -> Result<(), String> {
    let mut reusable = Reusable::new();
    for container in &pod.containers {
        allocate_container(process, pod, container, &reusable).await?;
        let allocated = process.with_manager_silently(|manager| {
            manager.container(&pod.name, &container.name).cloned().unwrap_or_default()
        });
        update_reusable(&mut reusable, container.kind, allocated);
    }
    Ok(())
}

fn update_reusable(reusable: &mut Reusable, kind: ContainerKind, allocated: ContainerAllocations) {
    for (resource, allocation) in allocated {
        let free = reusable.entry(resource).or_default();
        match kind {
            ContainerKind::Init => free.extend(allocation.ids),
            ContainerKind::App | ContainerKind::RestartableInit => {
                free.retain(|id| !allocation.ids.contains(id));
            }
        }
    }
}

/// `allocateContainerResources`.
async fn allocate_container<T: Host>(
    process: &Arc<Process<T>>,
    pod: &PodRequest,
    container: &ContainerRequest,
    reusable: &Reusable,
) -> Result<(), String> {
    let wanted = container.resources.iter().map(|(name, count)| (name.clone(), *count)).collect();
    let wanted: Vec<(String, u32)> = process.with_manager_silently(|manager| {
        manager.free_inactive();
        manager.in_iteration_order(wanted)
    });
    for (resource, count) in wanted {
        if !process.with_manager_silently(|manager| manager.knows(&resource)) {
            continue;
        }
        let request =
            ResourceRequest { pod, container, resource: &resource, count: count as usize };
        let none = Ids::new();
        let chosen = request.choose(process, reusable.get(&resource).unwrap_or(&none)).await;
        let allocated = match chosen {
            Ok(ids) if ids.is_empty() => continue,
            Ok(ids) => request.allocate(process, ids).await,
            Err(error) => Err(error),
        };
        if let Err(error) = allocated {
            process.with_manager(|manager| manager.allocated = manager.allocated_by_pods());
            return Err(error);
        }
    }
    Ok(())
}

/// The request of one container for one resource.
struct ResourceRequest<'a> {
    pod: &'a PodRequest,
    container: &'a ContainerRequest,
    resource: &'a str,
    count: usize,
}

impl ResourceRequest<'_> {
    /// `devicesToAllocate`. Returns no devices for a container that already has its devices.
    async fn choose<T: Host>(
        &self,
        process: &Arc<Process<T>>,
        reusable: &Ids,
    ) -> Result<Ids, String> {
        let resource = self.resource;
        let before = self.previous_allocation(process)?;
        let healthy = process
            .with_manager_silently(|manager| manager.healthy(resource).cloned())
            .ok_or_else(|| format!("cannot allocate unregistered device {resource}"))?;
        if healthy.is_empty() {
            return Err(format!(
                "no healthy devices present; cannot allocate unhealthy devices {resource}"
            ));
        }
        match before {
            Some(before) if healthy.is_superset(&before) => return Ok(Ids::new()),
            Some(_) => {
                return Err(format!(
                    "previously allocated devices are no longer healthy; cannot allocate \
                     unhealthy devices {resource}"
                ));
            }
            None => {}
        }
        let mut chosen = Ids::new();
        self.take_from(process, &mut chosen, reusable);
        if chosen.len() == self.count {
            return Ok(chosen);
        }
        self.choose_free(process, healthy, chosen).await
    }

    /// The devices that the container got at an earlier start. Their number must equal the
    /// request.
    fn previous_allocation<T: Host>(
        &self,
        process: &Arc<Process<T>>,
    ) -> Result<Option<Ids>, String> {
        let (pod, container) = (&self.pod.name, &self.container.name);
        let before = process.with_manager_silently(|manager| {
            manager.container(pod, container)?.get(self.resource).map(|before| before.ids.clone())
        });
        match before.as_ref().map(Ids::len) {
            Some(before) if before != self.count => Err(format!(
                "pod {pod:?} container {container:?} changed request for resource {:?} from \
                 {before} to {}",
                self.resource, self.count
            )),
            _ => Ok(before),
        }
    }

    /// The part of `devicesToAllocate` that takes devices that are not in use.
    async fn choose_free<T: Host>(
        &self,
        process: &Arc<Process<T>>,
        healthy: Ids,
        mut chosen: Ids,
    ) -> Result<Ids, String> {
        let resource = self.resource;
        let in_use = process
            .with_manager_silently(|m| m.allocated.get(resource).cloned().unwrap_or_default());
        let available: Ids = healthy.difference(&in_use).cloned().collect();
        let needed = self.count - chosen.len();
        if available.len() < needed {
            return Err(format!(
                "requested number of devices unavailable for {resource}. Requested: {needed}, \
                 Available: {}",
                available.len()
            ));
        }
        let preferred = self.preferred(process, &available, &chosen).await?;
        let preferred: Ids = preferred.intersection(&available).cloned().collect();
        self.take_from(process, &mut chosen, &preferred);
        self.take_from(process, &mut chosen, &available);
        if chosen.len() < self.count {
            return Err(format!(
                "unexpectedly allocated less resources than required. Requested: {}, Got: {}",
                self.count,
                chosen.len()
            ));
        }
        Ok(chosen)
    }

    /// `allocateRemainingFrom`: moves devices from `from` to `chosen` until `chosen` is complete.
    fn take_from<T: Host>(&self, process: &Arc<Process<T>>, chosen: &mut Ids, from: &Ids) {
        process.with_manager_silently(|manager| {
            let others = manager.in_iteration_order(from.difference(chosen).cloned().collect());
            for id in others.into_iter().take(self.count - chosen.len()) {
                let allocated = manager.allocated.entry(self.resource.to_owned()).or_default();
                allocated.insert(id.clone());
                chosen.insert(id);
            }
        });
    }

    /// `callGetPreferredAllocationIfAvailable`. The kubelet calls it even if there is no choice.
    async fn preferred<T: Host>(
        &self,
        process: &Arc<Process<T>>,
        available: &Ids,
        chosen: &Ids,
    ) -> Result<Ids, String> {
        let resource = self.resource;
        let endpoint =
            process.with_manager_silently(|manager| manager.endpoint(resource)).ok_or_else(
                || format!("endpoint not found in cache for a registered resource: {resource}"),
            )?;
        if !endpoint.options.get_preferred_allocation_available {
            return Ok(Ids::new());
        }
        let failed =
            |error| format!("device plugin GetPreferredAllocation rpc failed with err: {error}");
        let mut plugin = endpoint.running(resource).map_err(failed)?;
        let ids = |ids: Vec<String>| {
            process.with_manager_silently(|manager| manager.in_iteration_order(ids))
        };
        let request = ContainerPreferredAllocationRequest {
            available_device_ids: ids(available.union(chosen).cloned().collect()),
            must_include_device_ids: ids(chosen.iter().cloned().collect()),
            allocation_size: i32::try_from(self.count).unwrap_or(i32::MAX),
        };
        let request = PreferredAllocationRequest { container_requests: vec![request] };
        let answer = plugin
            .get_preferred_allocation(request)
            .await
            .map_err(|status| failed(grpc_error(&status)))?;
        let first = answer.into_inner().container_responses.into_iter().next();
        Ok(first.map(|response| response.device_ids.into_iter().collect()).unwrap_or_default())
    }

    /// Calls `Allocate` and stores the answer.
    async fn allocate<T: Host>(&self, process: &Arc<Process<T>>, ids: Ids) -> Result<(), String> {
        let resource = self.resource;
        let endpoint = process
            .with_manager_silently(|manager| manager.endpoint(resource))
            .ok_or_else(|| format!("unknown Device Plugin {resource}"))?;
        let mut plugin = endpoint.running(resource)?;
        let devices_ids = process.with_manager_silently(|manager| {
            manager.in_iteration_order(ids.iter().cloned().collect())
        });
        let request =
            AllocateRequest { container_requests: vec![ContainerAllocateRequest { devices_ids }] };
        let answer = plugin.allocate(request).await.map_err(|status| grpc_error(&status))?;
        let first = answer.into_inner().container_responses.into_iter().next();
        let answer = first.ok_or("no containers return in allocation response ")?;
        process.with_manager(|manager| {
            let containers = manager.pods.entry(self.pod.name.clone()).or_default();
            let allocations = containers.entry(self.container.name.clone()).or_default();
            allocations.insert(resource.to_owned(), Allocation { ids, answer });
        });
        Ok(())
    }
}

/// `GetDeviceRunContainerOptions`: what a container is started with, from the stored answers. The
/// kubelet calls the plugin only if the plugin requires `PreStartContainer`.
pub(crate) async fn start_container<T: Host>(
    process: &Arc<Process<T>>,
    pod: &str,
    container: &str,
) -> Result<ContainerView, String> {
    let allocations = process.with_manager_silently(|manager| {
        manager.container(pod, container).cloned().unwrap_or_default()
    });
    for (resource, allocation) in &allocations {
        let endpoint =
            process.with_manager_silently(|manager| manager.endpoint(resource)).ok_or_else(
                || format!("endpoint not found in cache for a registered resource: {resource}"),
            )?;
        if endpoint.options.pre_start_required {
            pre_start(&endpoint, resource, &allocation.ids).await?;
        }
    }
    let order = process
        .with_manager_silently(|m| m.in_iteration_order(allocations.keys().cloned().collect()));
    let answers = order.iter().filter_map(|resource| allocations.get(resource));
    let mut view = merge(container, answers.map(|a| &a.answer), process.options.platform);
    view.device_ids = allocations
        .into_iter()
        .map(|(resource, allocation)| (resource, allocation.ids.into_iter().collect()))
        .collect();
    Ok(view)
}

async fn pre_start(endpoint: &Endpoint, resource: &str, ids: &Ids) -> Result<(), String> {
    let failed = |error| format!("device plugin PreStartContainer rpc failed with err: {error}");
    let mut plugin = endpoint.running(resource).map_err(failed)?;
    let request = PreStartContainerRequest { devices_ids: ids.iter().cloned().collect() };
    match timeout(PRE_START_LIMIT, plugin.pre_start_container(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(status)) => Err(failed(grpc_error(&status))),
        Err(_) => Err(failed(
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded".to_owned(),
        )),
    }
}
