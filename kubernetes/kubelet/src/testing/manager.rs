//! The state of the device manager: `ManagerImpl` of `pkg/kubelet/cm/devicemanager/manager.go`,
//! without the calls to plugins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tonic::transport::Channel;

use super::options::{Iteration, Release};
use super::pods::PodRequest;
use super::rng::Rng;
use crate::v1beta1::device_plugin_client::DevicePluginClient;
use crate::v1beta1::{ContainerAllocateResponse, Device, DevicePluginOptions};

/// How long a resource stays after its plugin disconnected (`endpointStopGracePeriod`).
const STOP_GRACE: Duration = Duration::from_secs(5 * 60);

/// A resource as the kubelet reports it in the node's status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceView {
    /// The name of the extended resource.
    pub name: String,
    /// The number of all devices.
    pub capacity: usize,
    /// The number of healthy devices.
    pub allocatable: usize,
    /// The devices, in the plugin's order.
    pub devices: Vec<DeviceView>,
}

/// A device as the kubelet sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceView {
    /// The device ID.
    pub id: String,
    /// `Healthy` or `Unhealthy`. The kubelet treats every other value as unhealthy.
    pub health: String,
}

/// The values of the API's `health` field.
const HEALTHY: &str = "Healthy";
const UNHEALTHY: &str = "Unhealthy";

pub(crate) type Plugin = DevicePluginClient<Channel>;
pub(crate) type Ids = BTreeSet<String>;

/// A plugin that is or was connected. Clones refer to the same plugin.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// `None` after a kubelet restart, until the plugin registers again.
    pub(crate) plugin: Option<Plugin>,
    pub(crate) options: DevicePluginOptions,
    socket: PathBuf,
    stopped: Arc<Mutex<Option<Instant>>>,
}

impl Endpoint {
    pub(crate) fn connected(plugin: Plugin, options: DevicePluginOptions, socket: PathBuf) -> Self {
        Endpoint { plugin: Some(plugin), options, socket, stopped: Arc::default() }
    }

    fn stopped_at_start() -> Self {
        Endpoint {
            plugin: None,
            options: DevicePluginOptions::default(),
            socket: PathBuf::new(),
            stopped: Arc::new(Mutex::new(Some(Instant::now()))),
        }
    }

    fn stopped(&self) -> Option<Instant> {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// The client of the plugin.
    ///
    /// # Errors
    /// The plugin has disconnected. The text is the kubelet's message.
    pub(crate) fn running(&self, resource: &str) -> Result<Plugin, String> {
        match (&self.plugin, self.stopped()) {
            (Some(plugin), None) => Ok(plugin.clone()),
            _ => Err(format!("endpoint {resource} has been stopped")),
        }
    }
}

/// The devices of one resource that are allocated to one container.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Allocation {
    pub(crate) ids: Ids,
    pub(crate) answer: ContainerAllocateResponse,
}

pub(crate) type ContainerAllocations = BTreeMap<String, Allocation>;
pub(crate) type PodAllocations = BTreeMap<String, ContainerAllocations>;

/// The contents of `kubelet_internal_checkpoint`, which a kubelet reads when it starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checkpoint {
    pods: BTreeMap<String, PodAllocations>,
    registered: Vec<String>,
}

/// The state of the device manager.
pub(crate) struct Manager {
    release: Release,
    endpoints: BTreeMap<String, Endpoint>,
    /// Only from 1.37 on: every connected endpoint, by resource and socket.
    connected: BTreeMap<String, BTreeMap<PathBuf, Endpoint>>,
    devices: BTreeMap<String, Vec<Device>>,
    healthy: BTreeMap<String, Ids>,
    unhealthy: BTreeMap<String, Ids>,
    pub(crate) allocated: BTreeMap<String, Ids>,
    pub(crate) pods: BTreeMap<String, PodAllocations>,
    pub(crate) active: BTreeMap<String, PodRequest>,
    rng: Option<Rng>,
}

impl Manager {
    pub(crate) fn new(
        release: Release,
        iteration: Iteration,
        checkpoint: Checkpoint,
        active: BTreeMap<String, PodRequest>,
    ) -> Self {
        let empty = || checkpoint.registered.iter().map(|name| (name.clone(), Ids::new()));
        let mut manager = Manager {
            release,
            endpoints: empty().map(|(name, _)| (name, Endpoint::stopped_at_start())).collect(),
            connected: BTreeMap::new(),
            devices: BTreeMap::new(),
            healthy: empty().collect(),
            unhealthy: empty().collect(),
            allocated: BTreeMap::new(),
            pods: checkpoint.pods,
            active,
            rng: match iteration {
                Iteration::Sorted => None,
                Iteration::Shuffled(seed) => Some(Rng::new(seed)),
            },
        };
        manager.allocated = manager.allocated_by_pods();
        manager
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { pods: self.pods.clone(), registered: self.healthy.keys().cloned().collect() }
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
        endpoint: Endpoint,
    ) -> Result<(), String> {
        if self.release == Release::V1_37 {
            let sockets = self.connected.entry(resource.to_owned()).or_default();
            if sockets.contains_key(&endpoint.socket) {
                let socket = endpoint.socket.display();
                return Err(format!("device plugin already connected: {socket}"));
            }
            sockets.insert(endpoint.socket.clone(), endpoint.clone());
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
        let Some(sockets) = self.connected.get_mut(resource) else { return };
        let Some(endpoint) = sockets.remove(socket) else { return };
        endpoint.stop();
        let remaining = sockets.values().next().cloned();
        if let Some(other) = remaining {
            self.endpoints.insert(resource.to_owned(), other);
        } else {
            self.connected.remove(resource);
            self.mark_unhealthy(resource);
        }
    }

    fn mark_unhealthy(&mut self, resource: &str) {
        let healthy = self.healthy.insert(resource.to_owned(), Ids::new()).unwrap_or_default();
        self.unhealthy.entry(resource.to_owned()).or_default().extend(healthy);
    }

    /// `genericDeviceUpdateCallback`: each list replaces the previous one.
    pub(crate) fn list_received(&mut self, resource: &str, devices: Vec<Device>) {
        let ids = |healthy: bool| {
            devices
                .iter()
                .filter(|device| (device.health == HEALTHY) == healthy)
                .map(|device| device.id.clone())
                .collect()
        };
        self.healthy.insert(resource.to_owned(), ids(true));
        self.unhealthy.insert(resource.to_owned(), ids(false));
        self.devices.insert(resource.to_owned(), devices);
    }

    /// Whether the resource's plugin is connected and has sent a device list.
    pub(crate) fn has_list(&self, resource: &str) -> bool {
        let connected = self.endpoints.get(resource).is_some_and(|e| e.stopped().is_none());
        connected && self.devices.contains_key(resource)
    }

    pub(crate) fn endpoint(&self, resource: &str) -> Option<Endpoint> {
        self.endpoints.get(resource).cloned()
    }

    pub(crate) fn healthy(&self, resource: &str) -> Option<&Ids> {
        self.healthy.get(resource)
    }

    /// `isDevicePluginResource`.
    pub(crate) fn knows(&self, resource: &str) -> bool {
        self.healthy.contains_key(resource) || self.allocated.contains_key(resource)
    }

    /// `GetCapacity`, which also removes resources whose plugin was disconnected for longer than
    /// [`STOP_GRACE`].
    pub(crate) fn resources(&mut self) -> Vec<ResourceView> {
        let expired =
            |endpoint: &Endpoint| endpoint.stopped().is_some_and(|at| at.elapsed() > STOP_GRACE);
        let names: BTreeSet<String> =
            self.healthy.keys().chain(self.unhealthy.keys()).cloned().collect();
        let mut views = Vec::new();
        for name in names {
            if self.endpoints.get(&name).is_none_or(expired) {
                self.endpoints.remove(&name);
                self.healthy.remove(&name);
                self.unhealthy.remove(&name);
                continue;
            }
            views.push(self.view(name));
        }
        views
    }

    fn view(&self, name: String) -> ResourceView {
        let healthy = self.healthy.get(&name);
        let unhealthy = self.unhealthy.get(&name);
        let has = |ids: Option<&Ids>, id: &String| ids.is_some_and(|ids| ids.contains(id));
        let listed = self.devices.get(&name).map(Vec::as_slice).unwrap_or_default();
        let devices = listed
            .iter()
            .filter(|device| has(healthy, &device.id) || has(unhealthy, &device.id))
            .map(|device| DeviceView {
                id: device.id.clone(),
                health: if has(healthy, &device.id) { HEALTHY } else { UNHEALTHY }.to_owned(),
            })
            .collect();
        let allocatable = healthy.map_or(0, Ids::len);
        let capacity = allocatable + unhealthy.map_or(0, Ids::len);
        ResourceView { name, capacity, allocatable, devices }
    }

    /// `UpdateAllocatedDevices`: frees the devices of pods that no longer exist.
    pub(crate) fn free_inactive(&mut self) {
        let before = self.pods.len();
        self.pods.retain(|pod, _| self.active.contains_key(pod));
        if self.pods.len() != before {
            self.allocated = self.allocated_by_pods();
        }
    }

    /// All devices that are allocated to pods, by resource.
    pub(crate) fn allocated_by_pods(&self) -> BTreeMap<String, Ids> {
        let mut allocated = BTreeMap::<String, Ids>::new();
        for containers in self.pods.values() {
            for (resource, allocation) in containers.values().flatten() {
                allocated.entry(resource.clone()).or_default().extend(allocation.ids.clone());
            }
        }
        allocated
    }

    pub(crate) fn container(&self, pod: &str, container: &str) -> Option<&ContainerAllocations> {
        self.pods.get(pod)?.get(container)
    }
}
