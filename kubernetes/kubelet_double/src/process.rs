//! One life of a kubelet: its socket, its tasks and its connections.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubelet::http2::{self, CloseSignal, Closer, ConnectionLimits, serve_connection};
use kubelet::{KUBELET_SOCKET, Listener};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::faults::Faults;
use crate::host::Host;
use crate::kubelet::Options;
use crate::manager::{Cleanup, Manager, Release};
use crate::registration::{Connection, Registrar};
use crate::v1beta1::registration_server::RegistrationServer;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The name of the file that holds what a kubelet remembers of allocations.
const CHECKPOINT: &str = "kubelet_internal_checkpoint";

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
    /// By resource.
    known: BTreeMap<String, Vec<Connection>>,
    /// Open, and not remembered by the code that this one follows.
    forgotten: Vec<Connection>,
}

/// What outlives a kubelet: knobs, counters, and the signal that something changed.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) faults: Arc<Mutex<Faults>>,
    pub(crate) registrations: Arc<Mutex<BTreeMap<String, u64>>>,
    pub(crate) changes: Arc<watch::Sender<u64>>,
}

impl<T: Host> Process<T> {
    /// Starts a kubelet: makes and cleans its directory, listens, and serves. The task
    /// that comes with it owns all its tasks.
    pub(crate) fn start(
        host: T,
        directory: PathBuf,
        options: Options,
        manager: Manager,
        shared: Shared,
    ) -> io::Result<(Arc<Self>, Closer, impl Future<Output = ()> + Send + 'static)> {
        host.create_directory(&directory)?;
        clean_up(&host, &directory, options.cleanup)?;
        let listener = host.bind(&directory.join(KUBELET_SOCKET))?;
        let (tasks, arriving) = mpsc::unbounded_channel();
        let process = Arc::new(Process {
            host,
            directory,
            options,
            manager: Mutex::new(manager),
            connections: Mutex::default(),
            shared,
            tasks,
        });
        let (closer, closing) = http2::close_signal();
        let life = live(Arc::clone(&process), listener, arriving, closing);
        Ok((process, closer, life))
    }

    /// Runs a task for as long as the kubelet lives.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // The kubelet may just have ended; then so has the task.
        let _ = self.tasks.send(Box::pin(task));
    }

    pub(crate) fn with_manager<R>(&self, act: impl FnOnce(&mut Manager) -> R) -> R {
        let result = act(&mut lock(&self.manager));
        self.shared.changes.send_modify(|version| *version += 1);
        result
    }

    /// Looks at the manager without telling those who wait for changes.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut Manager) -> R) -> R {
        look(&mut lock(&self.manager))
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
        let known = connections.known.entry(resource.to_owned()).or_default();
        if self.options.release != Release::V1_37 {
            connections.forgotten.append(known);
        }
        known.push(connection);
    }

    /// Remembers how to close a connection.
    pub(crate) fn open_connection(&self, resource: &str, socket: &Path, closer: Closer) {
        let connections = &mut *lock(&self.connections);
        let known = connections.known.entry(resource.to_owned()).or_default();
        let mut all = known.iter_mut().rev().chain(connections.forgotten.iter_mut().rev());
        if let Some(connection) = all.find(|c| c.socket == socket && !c.is_open()) {
            connection.open(closer);
        }
    }

    /// `deregisterClient`.
    pub(crate) fn remove_connection(&self, resource: &str, socket: &Path) {
        let by_name = self.options.release != Release::V1_37;
        let connections = &mut *lock(&self.connections);
        if let Some(known) = connections.known.get_mut(resource) {
            let gone = known.extract_if(.., |c| by_name || c.socket == socket);
            connections.forgotten.extend(gone);
        }
    }

    /// `getClient` and `deregisterClient`.
    pub(crate) fn take_connection(&self, resource: &str, socket: &Path) -> Option<Connection> {
        let by_name = self.options.release != Release::V1_37;
        let mut connections = lock(&self.connections);
        let known = connections.known.get_mut(resource)?;
        let index = known.iter().position(|c| by_name || c.socket == socket)?;
        Some(known.remove(index))
    }

    /// `Stop`, the part about plugins: disconnects them all.
    pub(crate) fn disconnect_all(&self) {
        let connections = std::mem::take(&mut *lock(&self.connections));
        for (resource, connections) in connections.known {
            for connection in connections {
                self.with_manager(|m| m.plugin_disconnected(&resource, &connection.socket));
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A test that panics elsewhere should fail for its own reason.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Accepts, serves and runs everything until it is told to close, or dropped.
async fn live<T: Host>(
    process: Arc<Process<T>>,
    mut listener: T::Listener,
    mut arriving: mpsc::UnboundedReceiver<Task>,
    mut closing: CloseSignal,
) {
    let mut tasks = JoinSet::new();
    let registrations = closing.clone();
    loop {
        tokio::select! {
            biased;
            () = closing.requested() => return,
            Some(task) = arriving.recv() => {
                tasks.spawn(task);
            }
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
            Ok(io) = listener.accept() => {
                tasks.spawn(register(Arc::clone(&process), io, registrations.clone()));
            }
        }
    }
}

/// Answers a plugin that has connected to register.
async fn register<T: Host>(process: Arc<Process<T>>, io: T::Stream, closing: CloseSignal) {
    let service = RegistrationServer::new(Registrar(process));
    let limits = ConnectionLimits::default();
    let served = serve_connection(io, service, closing, limits, "a plugin's registration");
    if let Err(panicked) = served.await {
        std::panic::resume_unwind(Box::new(panicked.to_string()));
    }
}

/// `CleanupPluginDirectory`, in the ways it was written over time.
fn clean_up<T: Host>(host: &T, directory: &Path, cleanup: Cleanup) -> io::Result<()> {
    for path in host.list(directory)? {
        let goes = match cleanup {
            Cleanup::Sockets => host.is_socket(&path),
            Cleanup::EverythingButCheckpoint => !path.ends_with(CHECKPOINT),
            Cleanup::OwnSocket => path.ends_with(KUBELET_SOCKET),
        };
        if goes {
            host.remove(&path)?;
        }
    }
    Ok(())
}
