//! The state of one run of a kubelet: its device manager, its tasks and its connections.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::DropGuard;

use super::connection::Connection;
use super::faults::Faults;
use super::host::Host;
use super::manager::Manager;
use super::options::{Options, Release};

/// A task that runs until it ends or the kubelet does.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The state of one run of a kubelet.
pub(crate) struct Process<T: Host> {
    pub(crate) host: T,
    pub(crate) directory: PathBuf,
    pub(crate) options: Options,
    manager: Mutex<Manager>,
    connections: Mutex<Connections>,
    shared: Shared,
    tasks: mpsc::UnboundedSender<Task>,
}

/// The connections to plugins.
#[derive(Default)]
struct Connections {
    /// The connections that the real kubelet tracks, by resource.
    tracked: BTreeMap<String, Vec<Connection>>,
    /// Open connections that the real kubelet no longer tracks.
    untracked: Vec<Connection>,
}

/// The state that outlives a run of the kubelet: faults, counters and the change notification.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) faults: Arc<Mutex<Faults>>,
    pub(crate) registrations: Arc<Mutex<BTreeMap<String, u64>>>,
    pub(crate) changes: Arc<watch::Sender<u64>>,
}

impl<T: Host> Process<T> {
    /// Creates the state of a kubelet, and the receiver of the tasks that must be run for it.
    pub(crate) fn new(
        host: T,
        directory: PathBuf,
        options: Options,
        manager: Manager,
        shared: Shared,
    ) -> (Self, mpsc::UnboundedReceiver<Task>) {
        let (tasks, task_receiver) = mpsc::unbounded_channel();
        let process = Process {
            host,
            directory,
            options,
            manager: Mutex::new(manager),
            connections: Mutex::default(),
            shared,
            tasks,
        };
        (process, task_receiver)
    }

    /// Runs a task for as long as the kubelet lives.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // An error means that the kubelet has ended, and with it all its tasks.
        let _ = self.tasks.send(Box::pin(task));
    }

    /// Changes the manager and notifies those who wait for changes.
    pub(crate) fn with_manager<R>(&self, update: impl FnOnce(&mut Manager) -> R) -> R {
        let result = update(&mut lock(&self.manager));
        self.shared.changes.send_modify(|version| *version += 1);
        result
    }

    /// Uses the manager without notifying those who wait for changes.
    pub(crate) fn with_manager_silently<R>(&self, access: impl FnOnce(&mut Manager) -> R) -> R {
        access(&mut lock(&self.manager))
    }

    pub(crate) fn faults(&self) -> Faults {
        lock(&self.shared.faults).clone()
    }

    pub(crate) fn count_registration(&self, resource: &str) {
        *lock(&self.shared.registrations).entry(resource.to_owned()).or_default() += 1;
    }

    /// `registerClient`.
    pub(crate) fn add_connection(&self, resource: &str, connection: Connection) {
        let connections = &mut *lock(&self.connections);
        let tracked = connections.tracked.entry(resource.to_owned()).or_default();
        if self.options.release != Release::V1_37 {
            connections.untracked.append(tracked);
        }
        tracked.push(connection);
    }

    /// Records that a connection is established, and how to close it.
    pub(crate) fn set_established(&self, resource: &str, socket: &Path, closer: DropGuard) {
        let connections = &mut *lock(&self.connections);
        let tracked = connections.tracked.entry(resource.to_owned()).or_default();
        let mut all = tracked.iter_mut().rev().chain(connections.untracked.iter_mut().rev());
        if let Some(connection) = all.find(|c| c.socket == socket && !c.is_established()) {
            connection.set_established(closer);
        }
    }

    /// `deregisterClient`.
    pub(crate) fn remove_connection(&self, resource: &str, socket: &Path) {
        let by_name = self.options.release != Release::V1_37;
        let connections = &mut *lock(&self.connections);
        if let Some(tracked) = connections.tracked.get_mut(resource) {
            let removed = tracked.extract_if(.., |c| by_name || c.socket == socket);
            connections.untracked.extend(removed);
        }
    }

    /// `getClient` and `deregisterClient`.
    pub(crate) fn take_connection(&self, resource: &str, socket: &Path) -> Option<Connection> {
        let by_name = self.options.release != Release::V1_37;
        let mut connections = lock(&self.connections);
        let tracked = connections.tracked.get_mut(resource)?;
        let index = tracked.iter().position(|c| by_name || c.socket == socket)?;
        Some(tracked.remove(index))
    }

    /// The part of `Stop` that disconnects all plugins.
    pub(crate) fn disconnect_all(&self) {
        let connections = std::mem::take(&mut *lock(&self.connections));
        for (resource, connections) in connections.tracked {
            for connection in connections {
                self.with_manager(|m| m.plugin_disconnected(&resource, &connection.socket));
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock would hide the panic that made the test fail.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
