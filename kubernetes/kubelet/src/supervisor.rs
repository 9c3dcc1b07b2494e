//! The supervisor. It owns every task and handles every [`Event`].

mod served;
mod steps;

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::endpoint::{self, Endpoint};
use crate::events::{EndpointId, Event};
use crate::limits::Limits;
use crate::panicked::Panicked;
use crate::readiness::{Readiness, ResourceReadiness};
use crate::registration::RegisterError;
use crate::resource::Resource;
use crate::resource_registration::{RegistrationFailure, ResourceRegistration};
use crate::retry::LogLimiter;
use crate::socket_names::SocketNames;
use crate::text::{ErrorChain, printable};
use crate::transport::{Identity, Lock, Transport, UnixSockets};
use crate::{KUBELET_SOCKET, OutdatedContainer};

/// How often the sockets are checked while every resource is registered. No notification for a
/// deleted file works the same way on all operating systems.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often the sockets are checked otherwise: often enough to register within a second after a
/// kubelet starts.
const UNSETTLED_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// What to do if the kubelet ends every stream, as it does when another plugin registers the same
/// resource. Retries continue after growing delays.
const OTHER_PLUGIN_HINT: &str =
    "run only one device plugin for the resource, and read the kubelet's log";

/// How long the shutdown may take. A `HostProcess` container gets five seconds from its stop to its
/// end, which include the start of the stop and the end of the process. Longer than a connection
/// lingers, so that a well-behaved client sees every connection end in order.
const SHUTDOWN_LIMIT: Duration = Duration::from_millis(1500);

/// What [`run`] serves. It may change while `run` runs.
#[derive(Clone, Default)]
pub struct Served {
    /// The resources, at least one, each with another name. A resource that is added is registered,
    /// and one that is removed ends with its streams, calls and connections. The other resources
    /// keep their streams, as long as they are the same objects.
    pub resources: Vec<Arc<dyn Resource>>,
    /// Why the newest configuration is not active, for the status.
    pub rejected_configuration: Option<String>,
    /// What an administrator should know, a line each, for the status.
    pub notices: Vec<String>,
    /// The containers whose device has changed since it was allocated to them, for the status.
    /// `None` while they are not known.
    pub outdated: Option<Vec<OutdatedContainer>>,
}

impl Served {
    /// Resources that never change.
    #[must_use]
    pub fn fixed(resources: Vec<Arc<dyn Resource>>) -> watch::Receiver<Served> {
        watch::channel(Served { resources, ..Served::default() }).1
    }
}

/// Why [`run`] ended before a shutdown was requested.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The list of resources is empty.
    #[error("no resources to serve")]
    NoResources,
    /// Two resources have the same name. A kubelet would treat the second as a replacement of the
    /// first.
    #[error("duplicate resource `{0}`")]
    Duplicate(String),
    /// A task panicked, and the state that it left behind may be inconsistent.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

/// Serves and registers resources that never change with the kubelet of a device plugin
/// `directory`, usually [`default_device_plugin_dir`](crate::default_device_plugin_dir), until
/// `shutdown` completes. [`run`] has more options.
///
/// # Errors
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
pub async fn run<T: Transport>(
    directory: impl Into<PathBuf>,
    served: watch::Receiver<Served>,
    transport: T,
    shutdown: impl Future<Output = ()>,
    readiness: watch::Sender<Readiness>,
) -> Result<(), RunError> {
    let mut supervisor = Supervisor::new(directory.into(), served, transport, readiness);
    let ended = supervisor.supervise(pin!(shutdown)).await;
    supervisor.shut_down().await;
    ended
}

struct Supervisor<T: Transport> {
    transport: T,
    directory: PathBuf,
    kubelet_path: PathBuf,
    /// The kubelet's socket as it was first observed.
    known_kubelet: Option<Identity>,
    readiness: watch::Sender<Readiness>,
    served: watch::Receiver<Served>,
    /// In the order of `served`.
    resources: Vec<ManagedResource>,
    /// Resources that were removed while a kubelet may still be connected to them.
    ending: Vec<ManagedResource>,
    endpoints: HashMap<EndpointId, Endpoint>,
    /// The registration attempts in progress.
    attempts: HashMap<EndpointId, AbortHandle>,
    tasks: JoinSet<Event>,
    task_names: HashMap<Id, String>,
    events: mpsc::UnboundedReceiver<Event>,
    event_sender: mpsc::UnboundedSender<Event>,
    socket_names: SocketNames,
    next_endpoint: u64,
    limits: Limits,
    /// Whether the locks were not checked since the last check of the sockets.
    locks_are_due: bool,
    /// Whether to look for sockets that killed processes left behind.
    stale_are_due: bool,
}

/// A resource and its registration state.
struct ManagedResource {
    resource: Arc<dyn Resource>,
    registration: ResourceRegistration,
    log_limiter: LogLimiter,
    lock: Option<Box<dyn Lock>>,
    /// The file of the last attempt to bind a socket, if that failed and the file is still there.
    leftover: Option<PathBuf>,
}

impl ManagedResource {
    fn new(resource: Arc<dyn Resource>, now: Instant) -> Self {
        ManagedResource {
            resource,
            registration: ResourceRegistration::new(now),
            log_limiter: LogLimiter::default(),
            lock: None,
            leftover: None,
        }
    }
}

impl<T: Transport> Supervisor<T> {
    fn new(
        directory: PathBuf,
        served: watch::Receiver<Served>,
        transport: T,
        readiness: watch::Sender<Readiness>,
    ) -> Self {
        let (event_sender, events) = mpsc::unbounded_channel();
        Supervisor {
            transport,
            kubelet_path: directory.join(KUBELET_SOCKET),
            known_kubelet: None,
            directory,
            readiness,
            served,
            resources: Vec::new(),
            ending: Vec::new(),
            endpoints: HashMap::new(),
            attempts: HashMap::new(),
            tasks: JoinSet::new(),
            task_names: HashMap::new(),
            events,
            event_sender,
            socket_names: SocketNames::default(),
            next_endpoint: 0,
            limits: Limits::default(),
            locks_are_due: true,
            stale_are_due: false,
        }
    }

    async fn supervise(
        &mut self,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), RunError> {
        let mut checked = Instant::now();
        self.follow_served()?;
        loop {
            self.advance();
            self.report_other_plugins();
            self.publish_readiness();
            let event = self.next_event(shutdown.as_mut(), checked).await;
            if matches!(event, Event::Tick) {
                checked = Instant::now();
            }
            match event {
                Event::ShutdownRequested => return Ok(()),
                Event::Panicked(panicked) => return Err(panicked.into()),
                Event::ServedChanged => self.follow_served()?,
                event => self.handle(event),
            }
        }
    }

    async fn next_event(
        &mut self,
        shutdown: Pin<&mut impl Future<Output = ()>>,
        checked: Instant,
    ) -> Event {
        let wake = self.wakes_at(checked);
        tokio::select! {
            biased;
            () = shutdown => Event::ShutdownRequested,
            Some(ended) = self.tasks.join_next_with_id() => self.task_ended(ended),
            Some(event) = self.events.recv() => event,
            () = changed(&mut self.served) => Event::ServedChanged,
            () = sleep_until(wake) => Event::Tick,
        }
    }

    fn wakes_at(&self, checked: Instant) -> Instant {
        let now = Instant::now();
        let settled = self.resources.iter().all(|managed| managed.registration.is_settled());
        let interval = if settled { CHECK_INTERVAL } else { UNSETTLED_CHECK_INTERVAL };
        self.resources
            .iter()
            .filter_map(|managed| managed.registration.wakes_at(now))
            .fold(checked + interval, Instant::min)
    }

    fn task_ended(&mut self, ended: Result<(Id, Event), JoinError>) -> Event {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let task = self.task_names.remove(&id).unwrap_or_else(|| "unnamed task".to_owned());
        match ended {
            Ok((_, event)) => event,
            Err(error) if error.is_panic() => {
                Event::Panicked(Panicked::new(task, &*error.into_panic()))
            }
            // A registration attempt for a socket that was replaced in the meantime.
            Err(_aborted) => Event::Tick,
        }
    }

    fn spawn(
        &mut self,
        name: String,
        task: impl Future<Output = Event> + Send + 'static,
    ) -> AbortHandle {
        let handle = self.tasks.spawn(task);
        self.task_names.insert(handle.id(), name);
        handle
    }

    fn handle(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::StreamOpened(id) => {
                self.with_resource_of(id, |m| m.registration.stream_opened(now));
            }
            Event::ListDelivered(id) => self.with_resource_of(id, |m| {
                m.registration.list_delivered();
                m.log_limiter.reset();
                tracing::info!(resource = m.resource.name(), "kubelet received the device list");
            }),
            Event::StreamEnded(id) => self.with_resource_of(id, |m| {
                m.registration.stream_ended(now);
                let resource = m.resource.name();
                tracing::info!(resource, "kubelet closed the ListAndWatch stream");
            }),
            Event::RegistrationEnded(id, result) => self.registration_ended(id, result),
            Event::EndpointEnded(id) => self.endpoint_ended(id),
            Event::Tick => self.locks_are_due = true,
            Event::ShutdownRequested | Event::Panicked(_) | Event::ServedChanged => {
                unreachable!("handled by the loop")
            }
        }
    }

    /// Calls `update` with the resource whose current endpoint is `id`. Does nothing for an
    /// endpoint that was replaced.
    fn with_resource_of(&mut self, id: EndpointId, update: impl FnOnce(&mut ManagedResource)) {
        let is_current = |m: &&mut ManagedResource| m.registration.endpoint() == Some(id);
        if let Some(managed) = self.resources.iter_mut().find(is_current) {
            update(managed);
        }
    }

    /// Warns of another plugin that registers a resource of this one.
    fn report_other_plugins(&mut self) {
        for index in 0..self.resources.len() {
            let Some(streams) = self.resources[index].registration.take_suspicion() else {
                continue;
            };
            let (resource, hint) = (self.resources[index].resource.name(), OTHER_PLUGIN_HINT);
            let other_sockets = self.other_sockets();
            tracing::warn!(
                resource,
                streams,
                other_sockets,
                hint,
                "kubelet keeps closing the ListAndWatch stream"
            );
        }
    }

    /// The sockets in the directory that are neither the kubelet's nor this daemon's.
    fn other_sockets(&self) -> String {
        let mut sockets = self.transport.list(&self.directory).unwrap_or_default();
        sockets.retain(|socket| {
            socket.extension().is_some_and(|extension| extension == "sock")
                && *socket != self.kubelet_path
                && self.endpoints.values().all(|endpoint| endpoint.path != *socket)
        });
        let names = sockets.iter().filter_map(|socket| socket.file_name());
        names.map(|name| printable(&name.to_string_lossy())).collect::<Vec<_>>().join(", ")
    }

    fn registration_ended(&mut self, id: EndpointId, result: Result<(), RegisterError>) {
        self.attempts.remove(&id);
        let now = Instant::now();
        let Err(error) = result else {
            let socket = self.endpoints.get(&id).map(Endpoint::file_name);
            self.with_resource_of(id, |m| {
                m.registration.registered(now);
                tracing::info!(resource = m.resource.name(), socket, "registered with kubelet");
            });
            return;
        };
        if let Some(endpoint) = self.endpoints.get(&id)
            && !error.may_still_succeed()
        {
            endpoint.stop_expecting_kubelet();
        }
        let kubelet = self.kubelet_path.clone();
        self.with_resource_of(id, |m| {
            let (resource, text) = (m.resource.name(), ErrorChain(&error).to_string());
            if m.log_limiter.should_log(&text, now) {
                let (kubelet, hint) = (kubelet.display(), error.hint());
                tracing::warn!(resource, %kubelet, error = text, hint, "registration failed; retrying");
            }
            let (failure, socket) = (error.failure(), error.socket_use());
            let failure = RegistrationFailure { failure, socket, error: text };
            m.registration.registration_failed(failure, now);
        });
    }

    fn endpoint_ended(&mut self, id: EndpointId) {
        if let Some(endpoint) = self.endpoints.remove(&id) {
            // Some hosts do not remove the file while the socket is open.
            endpoint.remove_file(&self.transport);
            tracing::debug!(socket = %endpoint.path.display(), "closed plugin socket");
        }
        for managed in self.resources.iter_mut().chain(&mut self.ending) {
            managed.registration.endpoint_ended(id, Instant::now());
        }
    }

    fn publish_readiness(&self) {
        let state = |m: &ManagedResource| ResourceReadiness {
            name: m.resource.name().to_owned(),
            state: m.registration.state().clone(),
            pending: m.resource.pending(),
            registrations: m.registration.registrations(),
        };
        let served = self.served.borrow();
        let now = Readiness {
            resources: self.resources.iter().map(state).collect(),
            rejected_configuration: served.rejected_configuration.clone(),
            notices: served.notices.clone(),
            outdated: served.outdated.clone(),
        };
        drop(served);
        self.readiness.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
    }

    /// Ends all tasks in order, and aborts the tasks that do not end within [`SHUTDOWN_LIMIT`].
    async fn shut_down(mut self) {
        for attempt in self.attempts.values() {
            attempt.abort();
        }
        for endpoint in self.endpoints.values() {
            endpoint.close(&self.transport);
        }
        self.readiness.send_replace(Readiness::default());
        let limit = Instant::now() + SHUTDOWN_LIMIT;
        while let Ok(Some(ended)) = timeout_at(limit, self.tasks.join_next_with_id()).await {
            if let Event::Panicked(panicked) = self.task_ended(ended) {
                tracing::error!(%panicked, "task panicked during shutdown");
            }
        }
        for endpoint in self.endpoints.values() {
            endpoint.remove_file(&self.transport);
        }
        for managed in &mut self.resources {
            // Ignored: the log has the error of the attempt.
            let _ = endpoint::remove_leftover(&self.transport, &mut managed.leftover);
        }
        if !self.tasks.is_empty() {
            let tasks = self.tasks.len();
            tracing::warn!(tasks, "shutdown timed out; closed remaining tasks");
        }
    }
}

/// Completes when `served` has changed.
async fn changed(served: &mut watch::Receiver<Served>) {
    if served.changed().await.is_err() {
        // The sender was dropped, so nothing changes any more.
        std::future::pending::<()>().await;
    }
}
