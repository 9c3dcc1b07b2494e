//! What a plugin serves: runs a task for each resource, and ends all of them in order.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::names::{is_extended_resource_name, is_lock_name, is_prefix, socket_name};
use crate::node::Node;
use crate::readiness::{Readiness, ResourceReadiness};
use crate::registered_resource::keep_registered;
use crate::resource::Resource;
use crate::transport::Transport;
use crate::unix_sockets::MAX_PATH_BYTES;

/// How long the shutdown may take. A `HostProcess` container has five seconds to stop, which
/// include the delivery of the signal and the end of the process.
const SHUTDOWN_LIMIT: Duration = Duration::from_millis(1500);

/// What to do about a resource that requires `PreStartContainer` on Windows. See
/// [`Resource::pre_start`].
const NO_PRE_START: &str = "turn on the feature gate WindowsCPUAndMemoryAffinity of kubelet: without \
    it, kubelet on Windows calls PreStartContainer before it allocates devices, and fails";

/// The last time with 13 digits in Unix milliseconds, in the year 2286. The path of a socket with
/// this time is as long as any until then.
const LATE: u64 = 9_999_999_999_999;

/// What a plugin serves. It may change while the plugin runs.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Served {
    /// The resources, each with another name. Without resources, the plugin waits for some.
    ///
    /// When this changes, a resource that is new is registered, and one that is missing ends with
    /// its streams, calls and connections. The other resources keep their streams, as long as they
    /// are the same objects.
    pub resources: Vec<Arc<dyn Resource>>,
    /// What the status reports in addition to the resources, in a format of the plugin. Its
    /// programs read it with [`query_all`](crate::status::query_all). It makes no resource less
    /// ready. Answers that are larger than [`MESSAGE_LIMIT`](crate::MESSAGE_LIMIT) are not received.
    pub document: Vec<u8>,
}

impl Served {
    /// These resources, without a document.
    #[must_use]
    pub fn new(resources: Vec<Arc<dyn Resource>>) -> Self {
        Served { resources, document: Vec::new() }
    }

    /// Whether every resource can be registered from a socket in `directory`.
    pub(crate) fn check(&self, directory: &Path) -> Result<(), RunError> {
        let mut names = HashSet::new();
        for resource in &self.resources {
            let name = resource.name();
            let prefix = resource.socket_prefix();
            if !is_extended_resource_name(name) {
                return Err(RunError::InvalidName(name.to_owned()));
            }
            if !names.insert(name) {
                return Err(RunError::Duplicate(name.to_owned()));
            }
            if !is_prefix(&prefix) {
                return Err(RunError::InvalidSocketPrefix(prefix.into_owned()));
            }
            if let Some(lock) = resource.locks().into_iter().find(|lock| !is_lock_name(lock)) {
                return Err(RunError::InvalidLock(lock));
            }
            let socket = directory.join(socket_name(&prefix, LATE));
            if socket.as_os_str().len() > MAX_PATH_BYTES {
                return Err(RunError::SocketPathTooLong(socket));
            }
        }
        Ok(())
    }
}

/// Why a plugin ended before a shutdown was requested.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
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
    /// The name of a lock cannot be part of a file name on every system, or could be the name of
    /// a resource.
    #[error("invalid lock name `{0}`: use lower-case letters, digits, `-` and `.`")]
    InvalidLock(String),
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

pub(crate) struct Supervisor<T: Transport> {
    node: Arc<Node<T>>,
    served: watch::Receiver<Served>,
    /// The tasks by name of the resource. A resource that was removed stays until its task has
    /// ended.
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
    pub(crate) fn new(node: Node<T>, served: watch::Receiver<Served>) -> Self {
        Supervisor { node: Arc::new(node), served, running: HashMap::new(), tasks: JoinSet::new() }
    }

    /// Serves the resources until `shutdown` completes. Continues the panic of a task.
    pub(crate) async fn run(
        mut self,
        shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), RunError> {
        let ended = self.supervise(shutdown).await;
        self.shut_down().await;
        ended.unwrap_or_else(|error| resume_unwind(error.into_panic()))
    }

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

    /// Runs a task for exactly the resources that are served now. The task of a resource that was
    /// removed must have ended before another one serves a resource with the same name.
    fn follow_served(&mut self) -> Result<(), RunError> {
        let served = self.served.borrow_and_update().clone();
        served.check(&self.node.directory)?;
        self.publish(&served);
        self.take_all_locks(&served);
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
                    tracing::warn!(
                        resource = resource.name(),
                        hint = NO_PRE_START,
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

    /// Takes all locks at once. If two daemons start at the same time, one of them then serves all
    /// resources. If that fails, each resource tries to take its own locks.
    fn take_all_locks(&self, served: &Served) {
        let locks: Vec<String> = served.resources.iter().flat_map(|r| r.locks()).collect();
        if let Err(error) = self.node.take_locks(&locks) {
            tracing::debug!(%error, "cannot take all locks at once");
        }
    }

    /// Publishes what is served. The tasks publish the states of their resources.
    fn publish(&self, served: &Served) {
        self.node.readiness.send_if_modified(|before| {
            let mut now = Readiness {
                resources: Vec::new(),
                document: served.document.clone(),
                instance: self.node.instance,
            };
            for resource in &served.resources {
                let known = before.resources.iter().find(|known| known.name == resource.name());
                // Its task adds what is known of it.
                let starting = || ResourceReadiness::starting(resource.name());
                now.resources.push(known.cloned().unwrap_or_else(starting));
            }
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
