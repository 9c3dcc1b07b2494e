//! What an attack can reach: the node's files, the daemon's sockets and its program.

use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use daemon_bed::{Method, Node, RawPlugin};
use device_plugin::v1beta1::{AllocateRequest, ContainerAllocateRequest};
use device_plugin::{KUBELET_SOCKET, Transport, UnixSockets};
use prost::Message;
use tokio::time::{sleep, timeout};
use tonic::transport::Channel;

/// How long one action of an attack waits for the daemon before another one is tried.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long anything may take that the daemon must do. This ends trials that hang; it is no judgement
/// about a busy machine.
pub(crate) const HANGS: Duration = Duration::from_mins(3);

/// The node that is attacked.
pub(crate) struct Target {
    pub(crate) program: PathBuf,
    pub(crate) node: Node,
    /// The IDs of the replicas.
    pub(crate) replicas: Vec<String>,
    /// When the attack ends.
    pub(crate) until: Instant,
}

impl Target {
    /// Whether the attack still has time. On a busy machine it may begin late, so it does at least
    /// one of its actions.
    pub(crate) fn goes_on(&self, actions: u64) -> bool {
        actions == 0 || Instant::now() < self.until
    }

    /// The sockets of the daemon.
    pub(crate) fn sockets(&self) -> Result<Vec<PathBuf>> {
        let mut sockets = Vec::new();
        for entry in std::fs::read_dir(self.node.directory()).context("no directory")? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_foreign = name == KUBELET_SOCKET || name.starts_with("silent-");
            if !is_foreign && path.extension().is_some_and(|extension| extension == "sock") {
                sockets.push(path);
            }
        }
        sockets.sort();
        Ok(sockets)
    }

    /// A raw connection to the socket with this number, modulo the number of sockets, or `None` if
    /// the daemon does not accept one now.
    pub(crate) async fn dial(
        &self,
        number: usize,
    ) -> Result<Option<<UnixSockets as Transport>::Stream>> {
        let sockets = self.sockets()?;
        let socket = sockets.get(number % sockets.len().max(1));
        let socket = socket.context("the daemon has no sockets")?;
        let stream = timeout(PATIENCE, UnixSockets.connect(socket)).await;
        Ok(stream.ok().and_then(Result::ok))
    }

    /// An HTTP/2 client of that socket.
    pub(crate) async fn client(&self, number: usize) -> Result<Option<Channel>> {
        let Some(stream) = self.dial(number).await? else { return Ok(None) };
        let connected = timeout(PATIENCE, device_plugin::connection::connect(stream)).await;
        Ok(connected.ok().and_then(Result::ok))
    }

    /// A client of the socket that knows the replicas. At its limit of connections, the daemon
    /// accepts one when another attack has ended.
    pub(crate) async fn plugin(&self) -> Result<RawPlugin> {
        let probe = allocate_request(&self.replicas[..1], 1);
        let since = Instant::now();
        loop {
            for number in 0..self.sockets()?.len() {
                let Some(client) = self.client(number).await? else { continue };
                let mut plugin = RawPlugin::new(client);
                let call = plugin.call(Method::Allocate, probe.clone());
                if matches!(timeout(PATIENCE, call).await, Ok(Ok(_))) {
                    return Ok(plugin);
                }
            }
            ensure!(since.elapsed() < HANGS, "the daemon accepts no connection");
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// An encoded request for the same replicas in each of `containers` containers.
pub(crate) fn allocate_request(replicas: &[String], containers: usize) -> Bytes {
    let container = ContainerAllocateRequest { devices_ids: replicas.to_vec() };
    AllocateRequest { container_requests: vec![container; containers] }.encode_to_vec().into()
}

/// Runs an attack on this thread.
pub(crate) fn block_on<T>(attack: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the tokio runtime")?;
    let result = runtime.block_on(attack);
    runtime.shutdown_background();
    result
}
