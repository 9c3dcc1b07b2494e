//! A plugin as the kubelet knows it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

use crate::v1beta1::DevicePluginOptions;
use crate::v1beta1::device_plugin_client::DevicePluginClient;

pub(crate) type Plugin = DevicePluginClient<Channel>;

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

    pub(crate) fn stopped_at_start() -> Self {
        let (options, socket) = (DevicePluginOptions::default(), PathBuf::new());
        let stopped = Arc::new(Mutex::new(Some(Instant::now())));
        Endpoint { plugin: None, options, socket, stopped }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn stopped(&self) -> Option<Instant> {
        *lock(&self.stopped)
    }

    pub(crate) fn stop(&self) {
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

/// The text of a gRPC error in Go (`status.Error`).
pub(crate) fn grpc_error(status: &Status) -> String {
    let code = match status.code() {
        tonic::Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    };
    format!("rpc error: code = {code} desc = {}", status.message())
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock would hide the panic that made the test fail.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
