//! A plugin that can be run, and its options.

use std::future::{Future, Pending, pending};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::watch;

use crate::node::Node;
use crate::readiness::Readiness;
use crate::resource::Resource;
use crate::supervisor::{RunError, Served, Supervisor};
use crate::transport::Transport;
use crate::unix_sockets::UnixSockets;

/// A device plugin, which does nothing until [`run`](Self::run) is awaited.
#[must_use = "a plugin does nothing until it runs"]
pub struct DevicePlugin<T = UnixSockets, F = Pending<()>> {
    directory: PathBuf,
    served: watch::Receiver<Served>,
    transport: T,
    shutdown: F,
    readiness: watch::Sender<Readiness>,
}

impl DevicePlugin {
    /// A plugin with resources that never change. `directory` is the kubelet's device plugin
    /// directory, with the sockets of the kubelet and of its plugins. It is usually
    /// [`default_device_plugin_dir`](crate::default_device_plugin_dir).
    pub fn new(directory: impl Into<PathBuf>, resources: Vec<Arc<dyn Resource>>) -> Self {
        Self::following(directory, watch::channel(Served::new(resources)).1)
    }

    /// A plugin whose resources come and go.
    pub fn following(directory: impl Into<PathBuf>, served: watch::Receiver<Served>) -> Self {
        DevicePlugin {
            directory: directory.into(),
            served,
            transport: UnixSockets,
            shutdown: pending(),
            readiness: watch::Sender::default(),
        }
    }
}

impl<T: Transport, F: Future<Output = ()>> DevicePlugin<T, F> {
    /// Shuts the plugin down when `shutdown` completes: ends the streams, the calls and the
    /// connections, in this order, and removes the sockets. That takes at most 1.5 seconds. Without
    /// this, the plugin runs until its future is dropped.
    pub fn with_graceful_shutdown<G>(self, shutdown: G) -> DevicePlugin<T, G>
    where
        G: Future<Output = ()>,
    {
        let DevicePlugin { directory, served, transport, readiness, .. } = self;
        DevicePlugin { directory, served, transport, shutdown, readiness }
    }

    /// Uses other sockets than the host's, such as those in memory of a test.
    pub fn with_transport<U: Transport>(self, transport: U) -> DevicePlugin<U, F> {
        let DevicePlugin { directory, served, shutdown, readiness, .. } = self;
        DevicePlugin { directory, served, transport, shutdown, readiness }
    }

    /// The readiness of the plugin, for a probe. It is empty before and after the plugin runs.
    #[must_use]
    pub fn readiness(&self) -> watch::Receiver<Readiness> {
        self.readiness.subscribe()
    }

    /// Serves and registers the resources until the shutdown.
    ///
    /// # Errors
    /// See [`RunError`]. A kubelet that is not running, refuses the registration, hangs or stops is
    /// not an error, and neither is another daemon that has a lock. The registration is
    /// retried without a time limit.
    ///
    /// # Panics
    /// If the transport panics. The sockets are removed before. A resource that panics in a call
    /// fails only this call.
    pub async fn run(self) -> Result<(), RunError> {
        let node = Node::new(self.transport, self.directory, self.readiness);
        Supervisor::new(node, self.served).run(pin!(self.shutdown)).await
    }
}
