//! A plugin whose devices a test can change, and the node on which it runs.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use device_plugin::status::Phase;
use device_plugin::v1beta1::device_plugin_client::DevicePluginClient;
use device_plugin::{
    AdvertisedDevice, ContainerResponse, DeviceList, DevicePlugin, DevicePluginOptions, DeviceSpec,
    KUBELET_SOCKET, PreferredRequest, Readiness, Resource, RunError, Served, Status, Transport,
    async_trait,
};
use kubelet_double::{InMemory, KubeletHost, ResourceView};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::Channel;

/// The kubelet's directory on the node.
pub(crate) const DIRECTORY: &str = "/var/lib/kubelet/device-plugins";

/// The name of a resource.
pub(crate) const GPU: &str = "example.com/gpu";

/// A resource whose devices a test can change.
pub(crate) struct Devices {
    name: String,
    prefix: String,
    locks: std::sync::Mutex<Vec<String>>,
    list: watch::Sender<Arc<DeviceList>>,
    current: std::sync::Mutex<Vec<AdvertisedDevice>>,
    /// Why the devices are not known yet.
    pub(crate) pending: std::sync::Mutex<Option<String>>,
    pub(crate) panic_on: std::sync::Mutex<Option<String>>,
    /// The length of an environment value in each response.
    pub(crate) response_bytes: AtomicUsize,
    /// Whether the devices must be prepared before a container starts.
    pub(crate) requires_start: AtomicBool,
    /// Whether containers may not start.
    pub(crate) refuses_start: AtomicBool,
    /// Held by a test while no start of a container may end.
    pub(crate) starts_gate: tokio::sync::Mutex<()>,
    /// How many containers are starting.
    pub(crate) starting: AtomicUsize,
    /// How many containers were allocated or asked about.
    pub(crate) answered: AtomicUsize,
}

impl Devices {
    pub(crate) fn new(name: &str, prefix: &str, count: usize) -> Arc<Self> {
        let devices: Vec<AdvertisedDevice> =
            (0..count).map(|n| AdvertisedDevice::healthy(format!("{prefix}-{n}"))).collect();
        Arc::new(Devices {
            name: name.to_owned(),
            prefix: prefix.to_owned(),
            locks: std::sync::Mutex::default(),
            list: watch::Sender::new(Arc::new(DeviceList::new(devices.clone()).unwrap())),
            current: devices.into(),
            pending: std::sync::Mutex::default(),
            panic_on: None.into(),
            response_bytes: AtomicUsize::default(),
            requires_start: AtomicBool::default(),
            refuses_start: AtomicBool::default(),
            starts_gate: tokio::sync::Mutex::default(),
            starting: AtomicUsize::default(),
            answered: AtomicUsize::default(),
        })
    }

    /// Adds a lock that the resource needs.
    pub(crate) fn require(&self, lock: &str) {
        self.locks.lock().unwrap().push(lock.to_owned());
    }

    pub(crate) fn set_unhealthy(&self, id: &str) {
        self.change(|devices| {
            devices.iter_mut().find(|device| device.id == id).unwrap().healthy = false;
        });
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Vec<AdvertisedDevice>)) {
        let mut devices = self.current.lock().unwrap();
        change(&mut devices);
        self.list.send_replace(Arc::new(DeviceList::new(devices.clone()).unwrap()));
    }

    /// The name of the resource.
    pub(crate) fn label(&self) -> &str {
        &self.name
    }

    /// Whether the kubelet's view matches the current list.
    pub(crate) fn matches(&self, view: &ResourceView) -> bool {
        let devices = self.current.lock().unwrap();
        view.name == self.name
            && view.devices.len() == devices.len()
            && view.devices.iter().zip(&*devices).all(|(seen, device)| {
                seen.id == device.id && (seen.health == "Healthy") == device.healthy
            })
    }

    fn environment(&self) -> BTreeMap<String, String> {
        match self.response_bytes.load(Ordering::Relaxed) {
            0 => BTreeMap::new(),
            length => BTreeMap::from([("LONG".to_owned(), "x".repeat(length))]),
        }
    }

    pub(crate) fn streams(&self) -> usize {
        self.list.receiver_count()
    }
}

#[async_trait]
impl Resource for Devices {
    fn name(&self) -> &str {
        &self.name
    }

    fn socket_prefix(&self) -> Cow<'_, str> {
        self.prefix.as_str().into()
    }

    fn locks(&self) -> Vec<String> {
        self.locks.lock().unwrap().clone()
    }

    fn devices(&self) -> watch::Receiver<Arc<DeviceList>> {
        self.list.subscribe()
    }

    fn pending(&self) -> Option<String> {
        self.pending.lock().unwrap().clone()
    }

    async fn allocate(&self, ids: &[String]) -> Result<ContainerResponse, Status> {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let panics = self.panic_on.lock().unwrap().as_ref().is_some_and(|id| ids.contains(id));
        assert!(!panics, "cannot allocate {ids:?}");
        let devices = self.current.lock().unwrap();
        for id in ids {
            if !devices.iter().any(|device| device.id == *id) {
                return Err(Status::not_found(format!("no device `{id}`")));
            }
        }
        let devices = ids
            .iter()
            .map(|id| DeviceSpec { host_path: format!("host://{id}"), ..DeviceSpec::default() });
        Ok(ContainerResponse {
            devices: devices.collect(),
            envs: self.environment(),
            ..ContainerResponse::default()
        })
    }

    fn options(&self) -> DevicePluginOptions {
        DevicePluginOptions {
            get_preferred_allocation_available: true,
            pre_start_required: self.requires_start.load(Ordering::Relaxed),
        }
    }

    async fn pre_start(&self, ids: &[String]) -> Result<(), Status> {
        self.starting.fetch_add(1, Ordering::Relaxed);
        drop(self.starts_gate.lock().await);
        if self.refuses_start.load(Ordering::Relaxed) {
            return Err(Status::failed_precondition(format!("cannot reset {ids:?}")));
        }
        Ok(())
    }

    async fn preferred_allocation(
        &self,
        request: PreferredRequest<'_>,
    ) -> Result<Vec<String>, Status> {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let mut ids: Vec<String> = request.must_include.to_vec();
        let mut others: Vec<String> = request.available.to_vec();
        others.sort();
        let included: HashSet<&String> = request.must_include.iter().collect();
        others.retain(|id| !included.contains(id));
        ids.extend(others);
        ids.truncate(request.size);
        Ok(ids)
    }
}

/// A node with resources to advertise.
pub(crate) struct Node {
    pub(crate) host: InMemory,
    resources: Vec<Arc<Devices>>,
}

impl Node {
    pub(crate) fn new() -> Self {
        let host = InMemory::new();
        host.create_directory(Path::new(DIRECTORY)).unwrap();
        Node { host, resources: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: &str, prefix: &str, count: usize) -> Arc<Devices> {
        let devices = Devices::new(name, prefix, count);
        self.resources.push(Arc::clone(&devices));
        devices
    }

    pub(crate) fn run(&self) -> Plugin {
        let resources = self.resources.iter().map(|r| Arc::clone(r) as Arc<dyn Resource>).collect();
        Plugin::run(self.host.clone(), DIRECTORY, resources)
    }
}

/// A connection to a plugin's socket, as a kubelet opens it. Dropping it closes the connection.
pub(crate) struct Caller {
    pub(crate) plugin: DevicePluginClient<Channel>,
}

impl Caller {
    pub(crate) async fn connect<T: Transport>(host: &T, socket: &Path) -> Self {
        Self::over(host.connect(socket).await.unwrap()).await.unwrap()
    }

    /// Returns `None` if the peer closes the connection at once.
    pub(crate) async fn over<Io>(io: Io) -> Option<Self>
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let channel = device_plugin::connection::connect(io).await.ok()?;
        Some(Caller { plugin: DevicePluginClient::new(channel) })
    }
}

/// The sockets in the kubelet's directory, except the kubelet's own.
pub(crate) fn sockets(host: &InMemory) -> Vec<PathBuf> {
    let mut sockets = host.list(Path::new(DIRECTORY)).unwrap_or_default();
    sockets.retain(|socket| !socket.ends_with(KUBELET_SOCKET));
    sockets
}

/// A running plugin.
pub(crate) struct Plugin {
    stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<Result<(), RunError>>,
    pub(crate) readiness: watch::Receiver<Readiness>,
    pub(crate) served: watch::Sender<Served>,
}

impl Plugin {
    pub(crate) fn run(
        transport: impl device_plugin::Transport,
        directory: impl AsRef<Path>,
        resources: Vec<Arc<dyn Resource>>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async {
            let _ = stopped.await;
        };
        let (served, serving) = watch::channel(Served::new(resources));
        let plugin = DevicePlugin::following(directory.as_ref(), serving)
            .with_transport(transport)
            .with_graceful_shutdown(shutdown);
        let readiness = plugin.readiness();
        Plugin { stop: Some(stop), task: tokio::spawn(plugin.run()), readiness, served }
    }

    pub(crate) async fn wait_until_ready(&self) {
        self.wait_for(Readiness::is_ready).await;
    }

    pub(crate) async fn wait_for(&self, condition: impl FnMut(&Readiness) -> bool) {
        self.readiness.clone().wait_for(condition).await.unwrap();
    }

    /// The last error of the only resource, if it is waiting for a kubelet.
    pub(crate) fn last_error(&self) -> Option<String> {
        let resource = &self.readiness.borrow().resources[0];
        (resource.phase == Phase::WaitingForKubelet).then(|| resource.last_error.clone())
    }

    pub(crate) fn stop(mut self) -> impl Future<Output = Result<(), RunError>> {
        drop(self.stop.take());
        async move { self.task.await.unwrap() }
    }
}
