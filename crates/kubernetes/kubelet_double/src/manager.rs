//! The state of the device manager: `ManagerImpl` of `pkg/kubelet/cm/devicemanager/manager.go`,
//! without the calls to plugins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use device_plugin::v1beta1::device_plugin_client::DevicePluginClient;
use device_plugin::v1beta1::{ContainerAllocateResponse, Device, DevicePluginOptions};
use tokio::time::Instant;
use tonic::transport::Channel;

use crate::options::{KubeletOptions, Release};
use crate::pods::{ContainerRequest, ContainerView, PodRequest};

/// How long a resource stays after its plugin disconnected (`endpointStopGracePeriod`).
const STOP_GRACE: Duration = Duration::from_mins(5);

/// A resource as the kubelet reports it in the node's status.
#[derive(Clone, PartialEq, Debug)]
pub struct ResourceView {
    /// The name of the extended resource.
    pub name: String,
    /// The number of all devices.
    pub capacity: usize,
    /// The number of healthy devices.
    pub allocatable: usize,
    /// The devices, in the plugin's order. Every health but `Healthy` is `Unhealthy`.
    pub devices: Vec<Device>,
}

/// The values of the API's `health` field.
const HEALTHY: &str = "Healthy";
const UNHEALTHY: &str = "Unhealthy";

pub(crate) type DeviceIds = BTreeSet<String>;

pub(crate) type PluginClient = DevicePluginClient<Channel>;

/// A plugin that is or was connected. Clones refer to the same plugin.
#[derive(Clone, Default)]
pub(crate) struct PluginEndpoint {
    /// `None` after a kubelet restart, until the plugin registers again.
    pub(crate) plugin: Option<PluginClient>,
    pub(crate) options: DevicePluginOptions,
    pub(crate) socket: PathBuf,
    /// When the plugin disconnected.
    pub(crate) stopped: Arc<OnceLock<Instant>>,
}

impl PluginEndpoint {
    fn stop(&self) {
        self.stopped.get_or_init(Instant::now);
    }

    /// The client of the plugin.
    ///
    /// # Errors
    /// The plugin has disconnected. The text is the kubelet's message.
    pub(crate) fn running(&self, resource: &str) -> Result<PluginClient, String> {
        match (&self.plugin, self.stopped.get()) {
            (Some(plugin), None) => Ok(plugin.clone()),
            _ => Err(format!("endpoint {resource} has been stopped")),
        }
    }
}

/// What a container got of one resource.
#[derive(Clone)]
pub(crate) struct Allocation {
    pub(crate) ids: DeviceIds,
    /// The plugin's answer, which the kubelet repeats when the container restarts.
    pub(crate) answer: ContainerAllocateResponse,
}

/// The allocations of one pod, by container and resource.
type PodAllocations = BTreeMap<String, BTreeMap<String, Allocation>>;

/// What a kubelet keeps while it does not run: its pods and its checkpoint.
#[derive(Clone, Default)]
pub(crate) struct SavedState {
    pub(crate) pods: BTreeMap<String, PodRequest>,
    allocations: BTreeMap<String, PodAllocations>,
    registered: Vec<String>,
}

pub(crate) struct DeviceManager {
    release: Release,
    endpoints: BTreeMap<String, PluginEndpoint>,
    /// From 1.37 on, every connected endpoint, by resource and socket.
    connected: BTreeMap<(String, PathBuf), PluginEndpoint>,
    /// The last list of each resource, with the health that the kubelet assumes.
    devices: BTreeMap<String, Vec<Device>>,
    /// The resources whose list was received in this run.
    listed: DeviceIds,
    /// The devices in use, by resource.
    pub(crate) allocated: BTreeMap<String, DeviceIds>,
    allocations: BTreeMap<String, PodAllocations>,
    /// A pod, and the devices of its init containers that its next container takes, by resource.
    reusable: (String, BTreeMap<String, DeviceIds>),
    pub(crate) pods: BTreeMap<String, PodRequest>,
    rng: Option<fastrand::Rng>,
}

impl DeviceManager {
    pub(crate) fn new(options: KubeletOptions, saved: SavedState) -> Self {
        let devices: BTreeMap<_, _> =
            saved.registered.into_iter().map(|name| (name, Vec::new())).collect();
        let stopped = PluginEndpoint::default();
        stopped.stop();
        let mut manager = DeviceManager {
            release: options.release,
            endpoints: devices.keys().map(|name| (name.clone(), stopped.clone())).collect(),
            connected: BTreeMap::new(),
            devices,
            listed: DeviceIds::new(),
            allocated: BTreeMap::new(),
            allocations: saved.allocations,
            reusable: Default::default(),
            pods: saved.pods,
            rng: options.shuffled.map(fastrand::Rng::with_seed),
        };
        manager.count_allocated();
        manager
    }

    pub(crate) fn saved(&self) -> SavedState {
        SavedState {
            pods: self.pods.clone(),
            allocations: self.allocations.clone(),
            registered: self.devices.keys().cloned().collect(),
        }
    }

    /// Returns the members of a set in the order in which the kubelet iterates over them.
    pub(crate) fn in_iteration_order<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        if let Some(rng) = &mut self.rng {
            rng.shuffle(&mut items);
        }
        items
    }

    /// `PluginConnected`.
    pub(crate) fn plugin_connected(
        &mut self,
        resource: &str,
        endpoint: PluginEndpoint,
    ) -> Result<(), String> {
        if self.release == Release::V1_37 {
            let socket = (resource.to_owned(), endpoint.socket.clone());
            if self.connected.contains_key(&socket) {
                return Err(format!("device plugin already connected: {}", socket.1.display()));
            }
            self.connected.insert(socket, endpoint.clone());
        }
        self.endpoints.insert(resource.to_owned(), endpoint);
        Ok(())
    }

    /// `PluginDisconnected`.
    pub(crate) fn plugin_disconnected(&mut self, resource: &str, socket: &Path) {
        if self.release != Release::V1_37 {
            if let Some(endpoint) = self.endpoints.get(resource) {
                endpoint.stop();
                self.mark_unhealthy(resource);
            }
            return;
        }
        let socket = (resource.to_owned(), socket.to_owned());
        let Some(endpoint) = self.connected.remove(&socket) else { return };
        endpoint.stop();
        match self.connected.iter().find(|((name, _), _)| name == resource) {
            Some((_, other)) => {
                self.endpoints.insert(resource.to_owned(), other.clone());
            }
            None => self.mark_unhealthy(resource),
        }
    }

    fn mark_unhealthy(&mut self, resource: &str) {
        for device in self.devices.get_mut(resource).into_iter().flatten() {
            UNHEALTHY.clone_into(&mut device.health);
        }
    }

    /// `genericDeviceUpdateCallback`: each list replaces the previous one.
    pub(crate) fn list_received(&mut self, resource: &str, mut devices: Vec<Device>) {
        for device in devices.iter_mut().filter(|device| device.health != HEALTHY) {
            UNHEALTHY.clone_into(&mut device.health);
        }
        self.devices.insert(resource.to_owned(), devices);
        self.listed.insert(resource.to_owned());
    }

    /// Whether the resource's plugin is connected and has sent a device list.
    pub(crate) fn has_list(&self, resource: &str) -> bool {
        let connected = self.endpoints.get(resource).is_some_and(|e| e.stopped.get().is_none());
        connected && self.listed.contains(resource)
    }

    pub(crate) fn endpoint(&self, resource: &str) -> Result<PluginEndpoint, String> {
        self.endpoints.get(resource).cloned().ok_or_else(|| {
            format!("endpoint not found in cache for a registered resource: {resource}")
        })
    }

    /// `isDevicePluginResource`.
    pub(crate) fn is_device_plugin_resource(&self, resource: &str) -> bool {
        self.devices.contains_key(resource) || self.allocated.contains_key(resource)
    }

    /// The healthy devices of a resource that the kubelet knows.
    pub(crate) fn healthy(&self, resource: &str) -> Option<DeviceIds> {
        let healthy = self.devices.get(resource)?.iter().filter(|d| d.health == HEALTHY);
        Some(healthy.map(|device| device.id.clone()).collect())
    }

    /// `GetCapacity`, which also removes resources whose plugin was disconnected for longer than
    /// [`STOP_GRACE`].
    pub(crate) fn resources(&mut self) -> Vec<ResourceView> {
        self.endpoints.retain(|_, endpoint| {
            endpoint.stopped.get().is_none_or(|stopped| stopped.elapsed() <= STOP_GRACE)
        });
        self.devices.retain(|name, _| self.endpoints.contains_key(name));
        self.devices.iter().map(|(name, devices)| view(name, devices)).collect()
    }

    /// `UpdateAllocatedDevices`: frees the devices of pods that no longer exist.
    pub(crate) fn free_inactive(&mut self) {
        self.allocations.retain(|pod, _| self.pods.contains_key(pod));
        self.count_allocated();
    }

    /// Counts the devices that pods have, and no others.
    pub(crate) fn count_allocated(&mut self) {
        self.allocated.clear();
        for (resource, allocation) in self.allocations.values().flat_map(BTreeMap::values).flatten()
        {
            let allocated = self.allocated.entry(resource.clone()).or_default();
            allocated.extend(allocation.ids.iter().cloned());
        }
    }

    /// The devices of a resource that the container of a pod got.
    pub(crate) fn ids(
        &self,
        pod: &str,
        container: &ContainerRequest,
        resource: &str,
    ) -> Option<Vec<String>> {
        let allocated = self.allocations(pod, container)?.get(resource)?;
        Some(allocated.ids.iter().cloned().collect())
    }

    /// What the container of a pod got, by resource.
    fn allocations(
        &self,
        pod: &str,
        container: &ContainerRequest,
    ) -> Option<&BTreeMap<String, Allocation>> {
        self.allocations.get(pod)?.get(&container.name)
    }

    /// Whether the container must still be allocated devices of a resource.
    pub(crate) fn lacks(&self, pod: &str, container: &ContainerRequest, resource: &str) -> bool {
        let allocated = self.allocations(pod, container);
        self.is_device_plugin_resource(resource)
            && !allocated.is_some_and(|allocated| allocated.contains_key(resource))
    }

    pub(crate) fn insert_allocation(
        &mut self,
        pod: &str,
        container: &ContainerRequest,
        resource: &str,
        allocation: Allocation,
    ) {
        let of_pod = self.allocations.entry(pod.to_owned()).or_default();
        let of_container = of_pod.entry(container.name.clone()).or_default();
        of_container.insert(resource.to_owned(), allocation);
    }

    /// The devices of earlier init containers of the pod that its next container takes first.
    pub(crate) fn reusable(&mut self, pod: &str, resource: &str) -> DeviceIds {
        if self.reusable.0 != pod {
            self.reusable = (pod.to_owned(), BTreeMap::new());
        }
        self.reusable.1.get(resource).cloned().unwrap_or_default()
    }

    /// `addContainerAllocatedResources` and `removeContainerAllocatedResources`: the devices of an
    /// init container are free for the next container. The devices of other containers are not.
    pub(crate) fn update_reusable(&mut self, pod: &str, container: &ContainerRequest) {
        let allocated = self.allocations(pod, container).cloned().unwrap_or_default();
        for (resource, Allocation { ids, .. }) in allocated {
            let mut reusable = self.reusable(pod, &resource);
            if container.is_init {
                reusable.extend(ids);
            } else {
                reusable.retain(|id| !ids.contains(id));
            }
            self.reusable.1.insert(resource, reusable);
        }
    }

    /// `deviceRunContainerOptions`: what the container runtime gets.
    pub(crate) fn container(&mut self, pod: &str, container: &ContainerRequest) -> ContainerView {
        let allocated = self.allocations(pod, container).cloned().unwrap_or_default();
        let mut view = ContainerView::default();
        for (resource, allocation) in self.in_iteration_order(allocated.into_iter().collect()) {
            view.merge(allocation.answer);
            view.device_ids.insert(resource, allocation.ids.into_iter().collect());
        }
        view
    }
}

fn view(name: &str, devices: &[Device]) -> ResourceView {
    let allocatable = devices.iter().filter(|device| device.health == HEALTHY).count();
    ResourceView {
        name: name.to_owned(),
        capacity: devices.len(),
        allocatable,
        devices: devices.to_vec(),
    }
}
