//! Runs a task for each resource that is served, and ends all of them in order.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uds::MAX_PATH_BYTES;

use crate::node::Node;
use crate::readiness::{Readiness, ResourceReadiness, StatusNotes};
use crate::registered_resource::keep_registered;
use crate::resource::Resource;
use crate::resource_names::is_extended_resource_name;
use crate::socket_names::{is_prefix, socket_name};
use crate::transport::{Transport, UnixSockets};

/// How long the shutdown may take. A `HostProcess` container gets five seconds from its stop to its
/// end, which include the start of the stop and the end of the process.
const SHUTDOWN_LIMIT: Duration = Duration::from_millis(1500);

/// A time with as many digits as any until the year 2286, in Unix milliseconds.
const LATE: u64 = 9_999_999_999_999;

/// What to do about a resource that requires `PreStartContainer` on Windows. See
/// [`Resource::pre_start`].
const NO_PRE_START: &str = "turn on the feature gate WindowsCPUAndMemoryAffinity of kubelet: without \
    it, kubelet on Windows calls PreStartContainer before it allocates devices, and fails";

/// What [`run`] serves. It may change while `run` runs. Use `..Served::default()`: fields may be added.
#[derive(Clone, Default)]
pub struct Served {
    /// The resources, at least one, each with another name. A resource that is added is registered,
    /// and one that is removed ends with its streams, calls and connections. The other resources
    /// keep their streams, as long as they are the same objects.
    pub resources: Vec<Arc<dyn Resource>>,
    /// What the status reports besides.
    pub notes: StatusNotes,
}

impl Served {
    /// Resources that never change.
    #[must_use]
    pub fn fixed(resources: Vec<Arc<dyn Resource>>) -> watch::Receiver<Served> {
        watch::channel(Served { resources, ..Served::default() }).1
    }
}

/// Why [`run`] ended before a shutdown was requested.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The list of resources is empty.
    #[error("no resources to serve")]
    NoResources,
    /// A kubelet does not accept the name of a resource: see
    /// [`is_extended_resource_name`].
    #[error(
        "invalid resource name `{0}`: it must have the form `domain/name`, must not contain \
         `kubernetes.io/` and must not start with `requests.`"
    )]
    InvalidName(String),
    /// The prefix of a resource's sockets cannot be part of a file name.
    #[error("invalid socket prefix `{0}`: use letters, digits, `-`, `_` and `.`")]
    InvalidSocketPrefix(String),
    /// The path of a socket in the device plugin directory is longer than the operating system
    /// allows.
    #[error(
        "the path of plugin socket `{}` would be longer than {MAX_PATH_BYTES} bytes", .0.display()
    )]
    SocketPathTooLong(PathBuf),
    /// Two resources have the same name. A kubelet would treat the second as a replacement of the
    /// first.
    #[error("duplicate resource `{0}`")]
    Duplicate(String),
}

/// Serves and registers resources that never change with the kubelet of a device plugin
/// `directory`, usually [`default_device_plugin_dir`](crate::default_device_plugin_dir), until
/// `shutdown` completes. [`run`] has more options.
///
/// # Errors
/// As for [`run`].
///
/// # Panics
/// As for [`run`].
pub async fn serve(
    directory: impl Into<PathBuf>,
    resources: Vec<Arc<dyn Resource>>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let (readiness, _) = watch::channel(Readiness::default());
    run(directory, Served::fixed(resources), UnixSockets, shutdown, readiness).await
}

/// Serves and registers the resources of `served` until `shutdown` completes. Then it ends the
/// streams, the calls and the connections, in this order, and removes the sockets. `directory` is
/// the kubelet's device plugin directory, with the sockets of the kubelet and of its plugins.
///
/// # Errors
/// See [`RunError`]. A kubelet that is not running, refuses the registration, hangs or stops is
/// not an error, nor is another daemon with the same resource: registration is retried without a
/// time limit.
///
/// # Panics
/// If the transport panics. The sockets are removed before. A resource that panics in a call fails
/// only this call.
pub async fn run<T: Transport>(
    directory: impl Into<PathBuf>,
    served: watch::Receiver<Served>,
    transport: T,
    shutdown: impl Future<Output = ()>,
    readiness: watch::Sender<Readiness>,
) -> Result<(), RunError> {
    let mut supervisor = Supervisor {
        node: Arc::new(Node::new(transport, directory.into(), readiness)),
        served,
        running: HashMap::new(),
        tasks: JoinSet::new(),
    };
    let ended = supervisor.supervise(pin!(shutdown)).await;
    supervisor.shut_down().await;
    ended.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

struct Supervisor<T: Transport> {
    node: Arc<Node<T>>,
    served: watch::Receiver<Served>,
    /// By name. A resource that was removed stays until its task has ended.
    running: HashMap<String, Running>,
    /// Each returns the name of its resource.
    tasks: JoinSet<String>,
}

/// A resource that a task serves.
struct Running {
    resource: Arc<dyn Resource>,
    close: CancellationToken,
}

impl<T: Transport> Supervisor<T> {
    /// Returns how a task panicked, if one did.
    async fn supervise(
        &mut self,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Result<(), RunError>, JoinError> {
        loop {
            if let Err(error) = self.follow_served() {
                return Ok(Err(error));
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(Ok(())),
                Some(ended) = self.tasks.join_next() => {
                    self.running.remove(&ended?);
                }
                // An error means that the sender was dropped, so nothing changes any more.
                Ok(()) = self.served.changed() => {}
            }
        }
    }

    /// Runs a task for exactly the resources that are served now. A task that ends is waited for
    /// before another one serves a resource with the same name.
    fn follow_served(&mut self) -> Result<(), RunError> {
        let served = self.served.borrow_and_update().clone();
        check(&self.node.directory, &served.resources)?;
        self.publish(&served);
        for (name, running) in &self.running {
            let is_served = served.resources.iter().any(|r| Arc::ptr_eq(r, &running.resource));
            if !is_served && !running.close.is_cancelled() {
                tracing::info!(resource = name, "resource removed");
                running.close.cancel();
            }
        }
        for resource in served.resources {
            if !self.running.contains_key(resource.name()) {
                if cfg!(windows) && resource.options().pre_start_required {
                    let (resource, hint) = (resource.name(), NO_PRE_START);
                    tracing::warn!(
                        resource,
                        hint,
                        "PreStartContainer may fail for every container"
                    );
                }
                let close = CancellationToken::new();
                let task = keep_registered(self.node.clone(), resource.clone(), close.clone());
                self.tasks.spawn(task);
                self.running.insert(resource.name().to_owned(), Running { resource, close });
            }
        }
        Ok(())
    }

    /// Publishes what is served. The tasks publish the states of their resources.
    fn publish(&self, served: &Served) {
        self.node.readiness.send_if_modified(|before| {
            let state = |resource: &Arc<dyn Resource>| {
                let known = before.resources.iter().find(|known| known.name == resource.name());
                known.cloned().unwrap_or_else(|| ResourceReadiness {
                    pending: resource.pending(),
                    ..ResourceReadiness::starting(resource.name())
                })
            };
            let now = Readiness {
                resources: served.resources.iter().map(state).collect(),
                notes: served.notes.clone(),
            };
            let changed = *before != now;
            *before = now;
            changed
        });
    }

    /// Ends all tasks in order, and aborts the tasks that do not end within [`SHUTDOWN_LIMIT`].
    async fn shut_down(&mut self) {
        self.node.readiness.send_replace(Readiness::default());
        for running in self.running.values() {
            running.close.cancel();
        }
        let ended = async {
            while let Some(ended) = self.tasks.join_next().await {
                if let Err(error) = ended {
                    tracing::error!(%error, "task panicked during shutdown");
                }
            }
        };
        if timeout(SHUTDOWN_LIMIT, ended).await.is_err() {
            let tasks = self.tasks.len();
            tracing::warn!(tasks, "shutdown timed out; closed remaining tasks");
        }
    }
}

fn check(directory: &Path, resources: &[Arc<dyn Resource>]) -> Result<(), RunError> {
    if resources.is_empty() {
        return Err(RunError::NoResources);
    }
    let mut names = HashSet::new();
    for resource in resources {
        let (name, prefix) = (resource.name(), resource.socket_prefix());
        if !is_extended_resource_name(name) {
            return Err(RunError::InvalidName(name.to_owned()));
        }
        if !names.insert(name) {
            return Err(RunError::Duplicate(name.to_owned()));
        }
        if !is_prefix(&prefix) {
            return Err(RunError::InvalidSocketPrefix(prefix.into_owned()));
        }
        let socket = directory.join(socket_name(&prefix, LATE));
        if socket.as_os_str().len() > MAX_PATH_BYTES {
            return Err(RunError::SocketPathTooLong(socket));
        }
    }
    Ok(())
}
