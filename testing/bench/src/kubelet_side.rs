//! The least of a kubelet that a plugin can register with.
//!
//! It accepts every registration as a kubelet does: inside the call it connects to the
//! plugin, asks for its options, and then for its list. Each list is reported with the
//! moment at which it had arrived and was decoded.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kubelet::http2::{self, Client, CloseSignal, ConnectionLimits};
use kubelet::{KUBELET_SOCKET, Transport, UnixSockets};
use kubelet_double::v1beta1::device_plugin_client::DevicePluginClient;
use kubelet_double::v1beta1::registration_server::{Registration, RegistrationServer};
use kubelet_double::v1beta1::{Empty, RegisterRequest};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tonic::{Request, Response, Status};

/// How long a list may take, in any measurement, before something is wrong.
const LIMIT: Duration = Duration::from_secs(60);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A list of devices that has arrived.
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) resource: String,
    /// The ids of the healthy devices.
    pub(crate) healthy: Vec<String>,
    /// The connection that the list came over.
    pub(crate) connection: Client,
}

/// A kubelet that listens. Dropping it ends it; its socket's file stays.
pub(crate) struct Kubelet {
    pub(crate) listening_since: Instant,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    life: JoinHandle<()>,
}

impl Kubelet {
    /// Listens on `kubelet.sock` in `directory`, which must not be there yet.
    pub(crate) fn start(directory: &Path) -> Result<Kubelet> {
        let socket = directory.join(KUBELET_SOCKET);
        let listener = UnixSockets
            .bind(&socket)
            .with_context(|| format!("cannot listen on `{}`", socket.display()))?;
        let listening_since = Instant::now();
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let life = tokio::spawn(live(listener, directory.to_owned(), arrived));
        Ok(Kubelet { listening_since, arrivals, life })
    }

    /// The next list of `resource` with `healthy` healthy devices.
    pub(crate) async fn list(&mut self, resource: &str, healthy: usize) -> Result<Arrival> {
        let right_one = async {
            loop {
                let arrival = self.arrivals.recv().await.context("the kubelet has ended")?;
                if arrival.resource == resource && arrival.healthy.len() == healthy {
                    return Ok(arrival);
                }
            }
        };
        let waited = tokio::time::timeout(LIMIT, right_one).await;
        waited.with_context(|| format!("no list of {healthy} slots of {resource} came"))?
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.life.abort();
    }
}

/// Accepts plugins and owns everything that is done for them.
async fn live(
    listener: <UnixSockets as Transport>::Listener,
    directory: PathBuf,
    arrived: mpsc::UnboundedSender<Arrival>,
) {
    let (begin, mut to_begin) = mpsc::unbounded_channel();
    let service = RegistrationServer::new(Registrar { directory, arrived, begin });
    let (_never, closing) = http2::close_signal();
    let mut tasks: JoinSet<()> = JoinSet::new();
    loop {
        tokio::select! {
            Ok(io) = listener.accept() => {
                tasks.spawn(answer(io, service.clone(), closing.clone()));
            }
            Some(task) = to_begin.recv() => {
                tasks.spawn(task);
            }
            Some(_ended) = tasks.join_next() => {}
        }
    }
}

async fn answer(
    io: <UnixSockets as Transport>::Stream,
    service: RegistrationServer<Registrar>,
    closing: CloseSignal,
) {
    let limits = ConnectionLimits::default();
    // A plugin that hangs up, or a panic here, shows as a list that never comes.
    let _ = http2::serve_connection(io, service, closing, limits, "a registration").await;
}

#[derive(Clone)]
struct Registrar {
    directory: PathBuf,
    arrived: mpsc::UnboundedSender<Arrival>,
    /// Takes tasks that outlive the call.
    begin: mpsc::UnboundedSender<Task>,
}

#[tonic::async_trait]
impl Registration for Registrar {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let RegisterRequest { endpoint, resource_name, .. } = request.into_inner();
        let client = self.connect(&self.directory.join(endpoint)).await;
        let client = client.map_err(|error| Status::unknown(error.to_string()))?;
        let mut plugin = DevicePluginClient::with_origin(client.clone(), Client::origin());
        plugin.get_device_plugin_options(Empty {}).await?;
        self.begin(watch(resource_name, client, self.arrived.clone()));
        Ok(Response::new(Empty {}))
    }
}

impl Registrar {
    async fn connect(&self, socket: &Path) -> io::Result<Client> {
        let (client, driver) = http2::connect(UnixSockets.connect(socket).await?).await?;
        self.begin(async {
            driver.await;
        });
        Ok(client)
    }

    fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        // The kubelet may just have ended; then so has the task.
        let _ = self.begin.send(Box::pin(task));
    }
}

/// Reports every list until the stream ends.
async fn watch(resource: String, client: Client, arrived: mpsc::UnboundedSender<Arrival>) {
    let mut plugin = DevicePluginClient::with_origin(client.clone(), Client::origin());
    let Ok(lists) = plugin.list_and_watch(Empty {}).await else { return };
    let mut lists = lists.into_inner();
    while let Ok(Some(list)) = lists.message().await {
        let at = Instant::now();
        let healthy = list.devices.into_iter().filter(|device| device.health == "Healthy");
        let arrival = Arrival {
            at,
            resource: resource.clone(),
            healthy: healthy.map(|device| device.id).collect(),
            connection: client.clone(),
        };
        if arrived.send(arrival).is_err() {
            return;
        }
    }
}
