//! The state of the device manager: `ManagerImpl` of `pkg/kubelet/cm/devicemanager/manager.go`,
//! without the calls to plugins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tonic::transport::Channel;

use super::options::{Options, Release};
use super::pods::PodRequest;
use super::process::lock;
use crate::v1beta1::device_plugin_client::DevicePluginClient;
use crate::v1beta1::{Device, DevicePluginOptions};

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

pub(crate) type Plugin = DevicePluginClient<Channel>;
pub(crate) type Ids = BTreeSet<String>;

/// A plugin that is or was connected. Clones refer to the same plugin.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// `None` after a kubelet restart, until the plugin registers again.
    plugin: Option<Plugin>,
    pub(crate) options: DevicePluginOptions,
    socket: PathBuf,
    stopped: Arc<Mutex<Option<Instant>>>,
}

impl Endpoint {
    pub(crate) fn connected(plugin: Plugin, options: DevicePluginOptions, socket: PathBuf) -> Self {
        Endpoint { plugin: Some(plugin), options, socket, stopped: Arc::default() }
    }

    fn stopped_at_start() -> Self {
        let (options, socket) = (DevicePluginOptions::default(), PathBuf::new());
        let stopped = Arc::new(Mutex::new(Some(Instant::now())));
        Endpoint { plugin: None, options, socket, stopped }
    }

    fn stopped(&self) -> Option<Instant> {
        *lock(&self.stopped)
    }

    fn stop(&self) {
        *lock(&self.stopped) = Some(Instant::now());
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

/// What a kubelet keeps while it does not run: its pods and its checkpoint.
#[derive(Clone, Default)]
pub(crate) struct Saved {
    pub(crate) pods: BTreeMap<String, PodRequest>,
    allocations: BTreeMap<String, BTreeMap<String, Ids>>,
    registered: Vec<String>,
}

/// The state of the device manager.
pub(crate) struct Manager {
    release: Release,
    endpoints: BTreeMap<String, Endpoint>,
    /// Only from 1.37 on: every connected endpoint, by resource and socket.
    connected: BTreeMap<String, BTreeMap<PathBuf, Endpoint>>,
    /// The last list of each resource, with the health that the kubelet assumes.
    devices: BTreeMap<String, Vec<Device>>,
    /// The resources of which a list was received in this run.
    listed: Ids,
    /// The devices in use, by resource.
    pub(crate) allocated: BTreeMap<String, Ids>,
    /// The devices of each pod, by resource.
    pub(crate) allocations: BTreeMap<String, BTreeMap<String, Ids>>,
    pub(crate) pods: BTreeMap<String, PodRequest>,
    rng: Option<fastrand::Rng>,
}

impl Manager {
    pub(crate) fn new(options: Options, saved: Saved) -> Self {
        let registered = || saved.registered.iter().cloned();
        let mut manager = Manager {
            release: options.release,
            endpoints: registered().map(|name| (name, Endpoint::stopped_at_start())).collect(),
            connected: BTreeMap::new(),
            devices: registered().map(|name| (name, Vec::new())).collect(),
            listed: Ids::new(),
            allocated: BTreeMap::new(),
            allocations: saved.allocations,
            pods: saved.pods,
            rng: options.shuffled.map(fastrand::Rng::with_seed),
        };
        manager.count_allocated();
        manager
    }

    pub(crate) fn saved(&self) -> Saved {
        Saved {
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
        match sockets.values().next().cloned() {
            Some(other) => {
                self.endpoints.insert(resource.to_owned(), other);
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
        let connected = self.endpoints.get(resource).is_some_and(|e| e.stopped().is_none());
        connected && self.listed.contains(resource)
    }

    pub(crate) fn endpoint(&self, resource: &str) -> Result<Endpoint, String> {
        self.endpoints.get(resource).cloned().ok_or_else(|| {
            format!("endpoint not found in cache for a registered resource: {resource}")
        })
    }

    /// The healthy devices of a resource that the kubelet knows (`isDevicePluginResource`).
    pub(crate) fn healthy(&self, resource: &str) -> Option<Ids> {
        let healthy = self.devices.get(resource)?.iter().filter(|d| d.health == HEALTHY);
        Some(healthy.map(|device| device.id.clone()).collect())
    }

    /// `GetCapacity`, which also removes resources whose plugin was disconnected for longer than
    /// [`STOP_GRACE`].
    pub(crate) fn resources(&mut self) -> Vec<ResourceView> {
        let is_expired = |at: Instant| at.elapsed() > STOP_GRACE;
        self.endpoints.retain(|_, endpoint| !endpoint.stopped().is_some_and(is_expired));
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
        for (resource, ids) in self.allocations.values().flatten() {
            self.allocated.entry(resource.clone()).or_default().extend(ids.clone());
        }
    }
}

fn view(name: &str, devices: &[Device]) -> ResourceView {
    let allocatable = devices.iter().filter(|device| device.health == HEALTHY).count();
    let (name, capacity) = (name.to_owned(), devices.len());
    ResourceView { name, capacity, allocatable, devices: devices.to_vec() }
}
