//! One run of a kubelet: its device manager, its tasks and its connections.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use device_plugin::{KUBELET_SOCKET, Transport};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::manager::{DeviceManager, SavedState};
use crate::options::{Cleanup, Faults, KubeletOptions, Release};

/// The name of the file in which a kubelet saves its allocations.
const CHECKPOINT: &str = "kubelet_internal_checkpoint";

/// One run of a kubelet.
pub(crate) struct KubeletProcess<T: Transport> {
    pub(crate) host: T,
    pub(crate) directory: PathBuf,
    pub(crate) options: KubeletOptions,
    manager: Mutex<DeviceManager>,
    connections: Mutex<Vec<PluginConnection>>,
    shared: SharedState,
    tasks: Mutex<JoinSet<()>>,
    /// Closes the connections of plugins to the kubelet.
    pub(crate) close: CancellationToken,
}

/// A connection to the plugin behind a socket. Dropping it closes the connection.
struct PluginConnection {
    resource: String,
    socket: PathBuf,
    /// Whether the real kubelet still tracks it.
    is_tracked: bool,
    /// Closes the connection when it is dropped; `None` until the connection is established.
    closer: Option<DropGuard>,
}

/// What outlives a run of the kubelet: faults, counters and the change notification.
#[derive(Clone, Default)]
pub(crate) struct SharedState {
    pub(crate) faults: Arc<Mutex<Faults>>,
    pub(crate) registrations: Arc<Mutex<BTreeMap<String, u64>>>,
    pub(crate) changes: watch::Sender<u64>,
}

impl<T: Transport> KubeletProcess<T> {
    /// Starts a kubelet: cleans its directory and binds its socket.
    pub(crate) fn start(
        host: T,
        directory: PathBuf,
        options: KubeletOptions,
        saved: SavedState,
        shared: SharedState,
    ) -> io::Result<(Arc<Self>, T::Listener)> {
        clean_up(&host, &directory, options.cleanup)?;
        let listener = host.bind(&directory.join(KUBELET_SOCKET))?;
        let process = KubeletProcess {
            host,
            directory,
            options,
            manager: Mutex::new(DeviceManager::new(options, saved)),
            connections: Mutex::default(),
            shared,
            tasks: Mutex::default(),
            close: CancellationToken::new(),
        };
        Ok((Arc::new(process), listener))
    }

    /// A panic in the double's own code is a bug of the double and must not go unnoticed.
    pub(crate) fn check_tasks(&self) {
        while let Some(ended) = lock(&self.tasks).try_join_next() {
            ended.expect("a task of the kubelet double panicked");
        }
    }

    /// Ends all tasks and closes all connections, without any step of an orderly end.
    pub(crate) fn kill(&self) {
        lock(&self.tasks).abort_all();
        self.close.cancel();
        lock(&self.connections).clear();
    }

    /// Runs a task for as long as the kubelet lives.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.tasks).spawn(task);
    }

    /// Changes the manager and notifies those who wait for changes.
    pub(crate) fn with_manager<R>(&self, update: impl FnOnce(&mut DeviceManager) -> R) -> R {
        let result = update(&mut lock(&self.manager));
        self.shared.changes.send_modify(|version| *version += 1);
        result
    }

    /// The manager, for what nobody waits for.
    pub(crate) fn manager(&self) -> MutexGuard<'_, DeviceManager> {
        lock(&self.manager)
    }

    pub(crate) fn faults(&self) -> Faults {
        lock(&self.shared.faults).clone()
    }

    pub(crate) fn count_registration(&self, resource: &str) {
        *lock(&self.shared.registrations).entry(resource.to_owned()).or_default() += 1;
    }

    /// `registerClient`: tracks a connection that is not established yet.
    pub(crate) fn add_connection(&self, resource: &str, socket: &Path) {
        let mut connections = lock(&self.connections);
        if self.options.release != Release::V1_37 {
            for earlier in connections.iter_mut().filter(|c| c.resource == resource) {
                earlier.is_tracked = false;
            }
        }
        connections.push(PluginConnection {
            resource: resource.to_owned(),
            socket: socket.to_owned(),
            is_tracked: true,
            closer: None,
        });
    }

    /// Records that a connection is established, and how to close it.
    pub(crate) fn set_established(&self, socket: &Path, closer: DropGuard) {
        let mut connections = lock(&self.connections);
        let mut established = connections.iter_mut();
        if let Some(connection) = established.find(|c| c.socket == socket && c.closer.is_none()) {
            connection.closer = Some(closer);
        }
    }

    /// `deregisterClient`. Up to 1.36, the kubelet knows a connection by the resource's name only.
    /// Returns the socket of the connection that it forgets.
    pub(crate) fn take_connection(&self, resource: &str, socket: &Path) -> Option<PathBuf> {
        let by_name = self.options.release != Release::V1_37;
        let mut connections = lock(&self.connections);
        let index = connections.iter().position(|c| {
            c.is_tracked && c.resource == resource && (by_name || c.socket == socket)
        })?;
        Some(connections.remove(index).socket)
    }

    /// The part of `Stop` that disconnects all plugins.
    pub(crate) fn disconnect_all(&self) {
        let connections = std::mem::take(&mut *lock(&self.connections));
        for PluginConnection { resource, socket, .. } in connections.iter().filter(|c| c.is_tracked)
        {
            self.with_manager(|manager| manager.plugin_disconnected(resource, socket));
        }
    }
}

/// `CleanupPluginDirectory`, in the variants of the different releases. None removes a folder.
fn clean_up<T: Transport>(host: &T, directory: &Path, cleanup: Cleanup) -> io::Result<()> {
    for path in host.list(directory)? {
        let is_removed = match cleanup {
            Cleanup::Sockets => path.extension().is_some_and(|extension| extension == "sock"),
            Cleanup::EverythingButCheckpoint => !path.ends_with(CHECKPOINT) && !path.is_dir(),
            Cleanup::OwnSocket => path.ends_with(KUBELET_SOCKET),
        };
        if !is_removed {
            continue;
        }
        match host.remove(&path) {
            // The plugin may remove its socket at the same time.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock would hide the panic that made the test fail.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
