//! A minimal kubelet with which a plugin can register. The kubelet double does more for each list,
//! which would distort measurements.
//!
//! It handles a registration as a kubelet does: during the `Register` call it connects to the
//! plugin and calls `GetDevicePluginOptions`, then it calls `ListAndWatch`. It reports each device
//! list with the time at which the list was received and decoded.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use device_plugin::connection::ClosableIo;
use device_plugin::v1beta1::device_plugin_client::DevicePluginClient;
use device_plugin::v1beta1::registration_server::{Registration, RegistrationServer};
use device_plugin::v1beta1::{Empty, RegisterRequest};
use device_plugin::{KUBELET_SOCKET, Listener as _, Transport, UnixSockets};
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

/// How long to wait for a device list before a measurement fails.
const LIMIT: Duration = Duration::from_mins(3);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A received device list.
pub(crate) struct ReceivedList {
    /// When it was received and decoded.
    pub(crate) received_at: Instant,
    /// The name of the resource.
    pub(crate) resource: String,
    /// The IDs of the healthy devices.
    pub(crate) healthy: Vec<String>,
    /// The connection over which the list was received.
    pub(crate) connection: Channel,
}

/// A kubelet that listens. Dropping it stops it. Its socket file stays.
pub(crate) struct MinimalKubelet {
    /// Since when it listens.
    pub(crate) listening_since: Instant,
    lists: mpsc::UnboundedReceiver<ReceivedList>,
    task: JoinHandle<()>,
}

impl MinimalKubelet {
    /// Listens on `kubelet.sock` in `directory`. The socket must not exist yet.
    pub(crate) fn start(directory: &Path) -> Result<MinimalKubelet> {
        let socket = directory.join(KUBELET_SOCKET);
        let listener = UnixSockets
            .bind(&socket)
            .with_context(|| format!("cannot listen on `{}`", socket.display()))?;
        let listening_since = Instant::now();
        let (list_sender, lists) = mpsc::unbounded_channel();
        let task = tokio::spawn(serve(listener, directory.to_owned(), list_sender));
        Ok(MinimalKubelet { listening_since, lists, task })
    }

    /// Waits for the next list of `resource` with `healthy` healthy devices.
    pub(crate) async fn list(&mut self, resource: &str, healthy: usize) -> Result<ReceivedList> {
        let matching = async {
            loop {
                let list = self.lists.recv().await.context("the kubelet stopped")?;
                if list.resource == resource && list.healthy.len() == healthy {
                    return Ok(list);
                }
            }
        };
        let waited = tokio::time::timeout(LIMIT, matching).await;
        waited.with_context(|| {
            format!("no list of {resource} with {healthy} healthy replicas within {LIMIT:?}")
        })?
    }
}

impl Drop for MinimalKubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts plugins and owns all tasks that serve them.
async fn serve(
    listener: <UnixSockets as Transport>::Listener,
    directory: PathBuf,
    list_sender: mpsc::UnboundedSender<ReceivedList>,
) {
    let (task_sender, mut new_tasks) = mpsc::unbounded_channel();
    let service = RegistrationServer::new(Registrar { directory, list_sender, task_sender });
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let plugins = stream::unfold(listener, |mut listener| {
        let stop = stop.clone();
        async move {
            let accepted = listener.accept().await;
            let io = accepted.map(|io| ClosableIo::new(io, &stop));
            Some((io, listener))
        }
    });
    let mut serving = std::pin::pin!(Server::builder().serve_with_incoming(service, plugins));
    let mut tasks: JoinSet<()> = JoinSet::new();
    loop {
        tokio::select! {
            _never = &mut serving => return,
            Some(task) = new_tasks.recv() => {
                tasks.spawn(task);
            }
            Some(_ended) = tasks.join_next() => {}
        }
    }
}

#[derive(Clone)]
struct Registrar {
    directory: PathBuf,
    list_sender: mpsc::UnboundedSender<ReceivedList>,
    /// Receives tasks that outlive the call.
    task_sender: mpsc::UnboundedSender<Task>,
}

#[tonic::async_trait]
impl Registration for Registrar {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let RegisterRequest { endpoint, resource_name, .. } = request.into_inner();
        let client = self.connect(&self.directory.join(endpoint)).await;
        let client = client.map_err(|error| Status::unknown(error.to_string()))?;
        let mut plugin = DevicePluginClient::new(client.clone());
        plugin.get_device_plugin_options(Empty {}).await?;
        self.spawn(watch(resource_name, client, self.list_sender.clone()));
        Ok(Response::new(Empty {}))
    }
}

impl Registrar {
    async fn connect(&self, socket: &Path) -> io::Result<Channel> {
        let connected =
            device_plugin::connection::connect(UnixSockets.connect(socket).await?).await;
        connected.map_err(io::Error::other)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // An error means that the kubelet has stopped, and with it all its tasks.
        let _ = self.task_sender.send(Box::pin(task));
    }
}

/// Reports every list until the stream ends.
async fn watch(
    resource: String,
    client: Channel,
    list_sender: mpsc::UnboundedSender<ReceivedList>,
) {
    let mut plugin = DevicePluginClient::new(client.clone());
    let Ok(lists) = plugin.list_and_watch(Empty {}).await else { return };
    let mut lists = lists.into_inner();
    while let Ok(Some(list)) = lists.message().await {
        let received_at = Instant::now();
        let healthy = list.devices.into_iter().filter(|device| device.health == "Healthy");
        let list = ReceivedList {
            received_at,
            resource: resource.clone(),
            healthy: healthy.map(|device| device.id).collect(),
            connection: client.clone(),
        };
        if list_sender.send(list).is_err() {
            return;
        }
    }
}
