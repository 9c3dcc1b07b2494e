//! The supervisor: it owns every task, and answers every [`Event`].

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::KUBELET_SOCKET;
use crate::chain::Chain;
use crate::endpoint::{self, Endpoint};
use crate::events::{EndpointId, Event};
use crate::lane::{Cause, Lane, NotRegistered, Step, View};
use crate::leftovers::{self, SocketNames};
use crate::readiness::{Readiness, ResourceReadiness, ResourceState};
use crate::registration::{RegisterError, register};
use crate::resource::Resource;
use crate::retry::LogPacer;
use crate::service::{Service, Watched};
use crate::transport::{Identity, Transport};
use crate::wire::Panicked;

/// How often the sockets are looked at while every resource is registered. Nothing
/// tells when a file is deleted, on all systems alike.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often they are looked at otherwise: often enough to be back within a second of a
/// new kubelet.
const UNSETTLED_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// How long everything may take to end. A `HostProcess` container is given five seconds.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(4);

/// Where the kubelet is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunConfig {
    /// The kubelet's device plugin directory. Its socket is `kubelet.sock` there, and
    /// ours are made beside it.
    pub directory: PathBuf,
}

/// Why serving ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is nothing to serve.
    #[error("no resources to serve")]
    NoResources,
    /// Two resources have one name, and a kubelet would take the second for the first.
    #[error("the resource `{0}` is there twice")]
    Duplicate(String),
    /// A task panicked, and what it left behind cannot be trusted.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

/// Serves and registers `resources` until `shutdown` is ready, then ends streams,
/// calls and connections in this order and removes the sockets.
///
/// # Errors
/// See [`RunError`]. A kubelet that is absent, refuses, hangs or vanishes is no error:
/// it is waited for, for as long as it takes.
pub async fn run<T: Transport>(
    config: RunConfig,
    resources: Vec<Arc<dyn Resource>>,
    transport: T,
    shutdown: impl Future<Output = ()>,
    readiness: watch::Sender<Readiness>,
) -> Result<(), RunError> {
    let mut names: Vec<&str> = resources.iter().map(|resource| resource.name()).collect();
    names.sort_unstable();
    if names.is_empty() {
        return Err(RunError::NoResources);
    }
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(RunError::Duplicate(twice[0].to_owned()));
    }
    let mut supervisor = Supervisor::new(config.directory, resources, transport, readiness);
    let ended = supervisor.supervise(pin!(shutdown)).await;
    supervisor.close().await;
    ended.map_err(RunError::from)
}

struct Supervisor<T: Transport> {
    transport: T,
    directory: PathBuf,
    kubelet_path: PathBuf,
    readiness: watch::Sender<Readiness>,
    /// In the order of the resources.
    lanes: Vec<Managed>,
    endpoints: HashMap<EndpointId, Endpoint>,
    attempts: HashMap<EndpointId, AbortHandle>,
    tasks: JoinSet<Event>,
    task_names: HashMap<Id, String>,
    events: mpsc::UnboundedReceiver<Event>,
    events_in: mpsc::UnboundedSender<Event>,
    socket_names: SocketNames,
    next_endpoint: u64,
    leftovers: Leftovers,
}

/// A resource and what is known about it.
struct Managed {
    resource: Arc<dyn Resource>,
    lane: Lane,
    pacer: LogPacer,
}

/// Whether sockets of earlier processes were looked for: once is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leftovers {
    Unknown,
    Cleared,
}

impl<T: Transport> Supervisor<T> {
    fn new(
        directory: PathBuf,
        resources: Vec<Arc<dyn Resource>>,
        transport: T,
        readiness: watch::Sender<Readiness>,
    ) -> Self {
        let now = Instant::now();
        let (events_in, events) = mpsc::unbounded_channel();
        let managed =
            |resource| Managed { resource, lane: Lane::new(now), pacer: LogPacer::default() };
        Supervisor {
            transport,
            kubelet_path: directory.join(KUBELET_SOCKET),
            directory,
            readiness,
            lanes: resources.into_iter().map(managed).collect(),
            endpoints: HashMap::new(),
            attempts: HashMap::new(),
            tasks: JoinSet::new(),
            task_names: HashMap::new(),
            events,
            events_in,
            socket_names: SocketNames::default(),
            next_endpoint: 0,
            leftovers: Leftovers::Unknown,
        }
    }

    async fn supervise(
        &mut self,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), Panicked> {
        let mut checked = Instant::now();
        loop {
            self.advance();
            self.publish();
            let event = self.next_event(shutdown.as_mut(), checked).await;
            if matches!(event, Event::TimePassed) {
                checked = Instant::now();
            }
            match event {
                Event::ShutdownAsked => return Ok(()),
                Event::Panicked(panicked) => return Err(panicked),
                event => self.answer(event),
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
            () = shutdown => Event::ShutdownAsked,
            Some(ended) = self.tasks.join_next_with_id() => self.task_ended(ended),
            Some(event) = self.events.recv() => event,
            () = sleep_until(wake) => Event::TimePassed,
        }
    }

    fn wakes_at(&self, checked: Instant) -> Instant {
        let now = Instant::now();
        let settled = self.lanes.iter().all(|managed| managed.lane.is_settled());
        let interval = if settled { CHECK_INTERVAL } else { UNSETTLED_CHECK_INTERVAL };
        self.lanes
            .iter()
            .filter_map(|managed| managed.lane.wakes_at(now))
            .fold(checked + interval, Instant::min)
    }

    fn task_ended(&mut self, ended: Result<(Id, Event), JoinError>) -> Event {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let task = self.task_names.remove(&id).unwrap_or_else(|| "a task".to_owned());
        match ended {
            Ok((_, event)) => event,
            Err(error) if error.is_panic() => {
                Event::Panicked(Panicked::new(task, &*error.into_panic()))
            }
            // An attempt that was given up: the lane has moved on.
            Err(_aborted) => Event::TimePassed,
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

    fn answer(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::StreamOpened(id) => self.on_current(id, |m| m.lane.stream_opened(now)),
            Event::ListTaken(id) => self.on_current(id, |m| {
                m.lane.list_taken();
                m.pacer.reset();
                tracing::info!(resource = m.resource.name(), "the kubelet has the list");
            }),
            Event::StreamEnded(id) => self.on_current(id, |m| {
                m.lane.stream_ended(now);
                tracing::warn!(resource = m.resource.name(), "the kubelet's stream ended");
            }),
            Event::RegistrationEnded(id, result) => self.registration_ended(id, result, now),
            Event::EndpointEnded(id, result) => self.endpoint_ended(id, &result),
            Event::LeftoversCleared | Event::TimePassed => {}
            Event::ShutdownAsked | Event::Panicked(_) => unreachable!("ends the loop"),
        }
    }

    /// Does something with the resource whose socket `id` is, if it still is.
    fn on_current(&mut self, id: EndpointId, act: impl FnOnce(&mut Managed)) {
        if let Some(managed) = self.lanes.iter_mut().find(|m| m.lane.endpoint() == Some(id)) {
            act(managed);
        }
    }

    fn registration_ended(
        &mut self,
        id: EndpointId,
        result: Result<(), RegisterError>,
        now: Instant,
    ) {
        self.attempts.remove(&id);
        let expects = match &result {
            Ok(()) => true,
            Err(error) => error.may_have_worked(),
        };
        if let Some(endpoint) = self.endpoints.get(&id)
            && !expects
        {
            endpoint.expect_kubelet(false);
        }
        let kubelet = self.kubelet_path.clone();
        self.on_current(id, |m| match result {
            Ok(()) => {
                m.lane.registered(now);
                tracing::info!(resource = m.resource.name(), "registered");
            }
            Err(error) => {
                let text = Chain(&error).to_string();
                if m.pacer.lets_through(&text, now) {
                    tracing::warn!(
                        resource = m.resource.name(),
                        kubelet = %kubelet.display(),
                        error = %text,
                        hint = error.hint(),
                        "not registered; trying again"
                    );
                }
                let (failure, socket) = (error.failure(), error.socket());
                m.lane.not_registered(NotRegistered { failure, socket, error: text }, now);
            }
        });
    }

    fn endpoint_ended(&mut self, id: EndpointId, result: &io::Result<()>) {
        if let Some(endpoint) = self.endpoints.remove(&id) {
            let socket = endpoint.path.display();
            match result {
                Ok(()) => tracing::debug!(%socket, "socket closed"),
                Err(error) => tracing::warn!(%socket, %error, "socket stopped accepting"),
            }
        }
        for managed in &mut self.lanes {
            managed.lane.endpoint_ended(id);
        }
    }

    /// Looks at the sockets and does every step that is due.
    fn advance(&mut self) {
        let kubelet = self.look_for_kubelet();
        for index in 0..self.lanes.len() {
            // Binding makes registering due.
            while self.take_step(index, kubelet) == Progress::Made {}
        }
    }

    fn look_for_kubelet(&mut self) -> Option<Identity> {
        let (kubelet, trouble) = match self.transport.identity(&self.kubelet_path) {
            Ok(Some(identity)) => (Some(identity), None),
            Ok(None) => {
                (None, Some(format!("there is no kubelet at {}", self.kubelet_path.display())))
            }
            Err(error) => {
                let path = self.kubelet_path.display();
                (None, Some(format!("could not look at {path}: {error}")))
            }
        };
        let Some(trouble) = trouble else { return kubelet };
        let now = Instant::now();
        for m in &mut self.lanes {
            m.lane.note(trouble.clone());
            let waiting = matches!(m.lane.state(), ResourceState::WaitingForKubelet { .. });
            if waiting && m.pacer.lets_through(&trouble, now) {
                tracing::warn!(
                    resource = m.resource.name(),
                    reason = trouble,
                    "waiting for the kubelet"
                );
            }
        }
        kubelet
    }

    fn take_step(&mut self, index: usize, kubelet: Option<Identity>) -> Progress {
        let lane = &self.lanes[index].lane;
        let own = lane.endpoint().and_then(|id| self.endpoints.get(&id));
        let view = View {
            now: Instant::now(),
            kubelet,
            own_in_place: own.is_some_and(|endpoint| endpoint.is_in_place(&self.transport)),
        };
        match lane.step(&view) {
            Step::Wait => Progress::None,
            Step::Bind(cause) => self.bind(index, cause),
            Step::Register(kubelet) => {
                self.register(index, kubelet);
                Progress::Made
            }
        }
    }

    fn bind(&mut self, index: usize, cause: Cause) -> Progress {
        let managed = &mut self.lanes[index];
        let now = Instant::now();
        let resource = managed.resource.name();
        let path = self.directory.join(self.socket_names.next(managed.resource.socket_prefix()));
        let id = EndpointId(self.next_endpoint);
        self.next_endpoint += 1;
        let (endpoint, listener, parts) = match Endpoint::bind(&self.transport, path.clone()) {
            Ok(bound) => bound,
            Err(error) => {
                let text = format!("could not listen on {}: {error}", self.directory.display());
                if managed.pacer.lets_through(&text, now) {
                    tracing::warn!(resource, socket = %path.display(), %error, "could not listen");
                }
                managed.lane.bind_failed(text, now);
                return Progress::None;
            }
        };
        let (socket, cause_text) = (path.display(), cause.as_str());
        if matches!(cause, Cause::Retry | Cause::NoStream) {
            // One of many, and its cause was logged.
            tracing::debug!(resource, %socket, cause = cause_text, "listening");
        } else {
            tracing::info!(resource, %socket, cause = cause_text, "listening");
        }
        let service = Service::new(Watched {
            id,
            resource: Arc::clone(&managed.resource),
            closing: parts.closing.clone(),
            kubelet_expected: parts.kubelet_expected,
            events: self.events_in.clone(),
            readiness: self.readiness.subscribe(),
        });
        let serving = endpoint::serve(listener, service, parts.closing, resource.to_owned());
        let name = format!("the listener of {resource}");
        let previous = managed.lane.endpoint();
        managed.lane.bound(id, cause, now);
        self.endpoints.insert(id, endpoint);
        if let Some(previous) = previous {
            self.retire(previous);
        }
        self.spawn(name, async move {
            match serving.await {
                Ok(()) => Event::EndpointEnded(id, Ok(())),
                Err(panicked) => Event::Panicked(panicked),
            }
        });
        self.clear_leftovers();
        Progress::Made
    }

    /// Closes a socket that another one has replaced.
    fn retire(&mut self, id: EndpointId) {
        if let Some(attempt) = self.attempts.remove(&id) {
            attempt.abort();
        }
        if let Some(endpoint) = self.endpoints.get(&id) {
            endpoint.close(&self.transport);
        }
    }

    fn register(&mut self, index: usize, kubelet: Identity) {
        let managed = &mut self.lanes[index];
        let Some(id) = managed.lane.endpoint() else { return };
        let Some(endpoint) = self.endpoints.get(&id) else { return };
        let name = managed.resource.name().to_owned();
        managed.lane.asking(kubelet);
        endpoint.expect_kubelet(true);
        tracing::debug!(resource = name, socket = endpoint.file_name(), "registering");
        let (transport, path) = (self.transport.clone(), self.kubelet_path.clone());
        let socket = endpoint.file_name();
        let task = format!("the registration of {name}");
        let attempt = self.spawn(task, async move {
            Event::RegistrationEnded(id, register(transport, &path, name, socket).await)
        });
        self.attempts.insert(id, attempt);
    }

    /// Starts the search for leftovers once every resource has its first socket.
    fn clear_leftovers(&mut self) {
        let all_bound = self.lanes.iter().all(|m| m.lane.endpoint().is_some());
        if self.leftovers == Leftovers::Cleared || !all_bound {
            return;
        }
        self.leftovers = Leftovers::Cleared;
        let ours = self.endpoints.values().map(|endpoint| endpoint.path.clone()).collect();
        let prefixes = self.lanes.iter().map(|m| m.resource.socket_prefix().to_owned()).collect();
        let (transport, directory) = (self.transport.clone(), self.directory.clone());
        self.spawn("the search for leftover sockets".to_owned(), async move {
            leftovers::clear(transport, directory, prefixes, ours).await;
            Event::LeftoversCleared
        });
    }

    fn publish(&self) {
        let state = |m: &Managed| ResourceReadiness {
            name: m.resource.name().to_owned(),
            state: m.lane.state().clone(),
        };
        let now = Readiness { resources: self.lanes.iter().map(state).collect() };
        self.readiness.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
    }

    /// Ends everything in order, and what does not end in time, at once.
    async fn close(mut self) {
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
                tracing::error!(%panicked, "a task panicked while everything ended");
            }
        }
        if !self.tasks.is_empty() {
            tracing::warn!(tasks = self.tasks.len(), "cut off what did not end in time");
        }
    }
}

/// Whether a step was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Made,
    None,
}
