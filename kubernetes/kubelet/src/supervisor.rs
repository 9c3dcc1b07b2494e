//! The supervisor: it owns every task, and answers every [`Event`].

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

use crate::KUBELET_SOCKET;
use crate::chain::Chain;
use crate::endpoint::Endpoint;
use crate::events::{EndpointId, Event};
use crate::lane::{Lane, NotRegistered};
use crate::leftovers::SocketNames;
use crate::readiness::{Readiness, ResourceReadiness};
use crate::registration::RegisterError;
use crate::resource::Resource;
use crate::retry::LogPacer;
use crate::transport::Transport;
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
                tracing::info!(resource = m.resource.name(), "the kubelet's stream ended");
            }),
            Event::RegistrationEnded(id, result) => self.registration_ended(id, result),
            Event::EndpointEnded(id) => self.endpoint_ended(id),
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

    fn registration_ended(&mut self, id: EndpointId, result: Result<(), RegisterError>) {
        self.attempts.remove(&id);
        let now = Instant::now();
        let Err(error) = result else {
            self.on_current(id, |m| {
                m.lane.registered(now);
                tracing::info!(resource = m.resource.name(), "registered");
            });
            return;
        };
        if let Some(endpoint) = self.endpoints.get(&id)
            && !error.may_have_worked()
        {
            endpoint.expect_kubelet(false);
        }
        let kubelet = self.kubelet_path.clone();
        self.on_current(id, |m| {
            let (resource, text) = (m.resource.name(), Chain(&error).to_string());
            if m.pacer.lets_through(&text, now) {
                let (kubelet, hint) = (kubelet.display(), error.hint());
                tracing::warn!(resource, %kubelet, error = text, hint, "not registered; trying again");
            }
            let (failure, socket) = (error.failure(), error.socket());
            m.lane.not_registered(NotRegistered { failure, socket, error: text }, now);
        });
    }

    fn endpoint_ended(&mut self, id: EndpointId) {
        if let Some(endpoint) = self.endpoints.remove(&id) {
            tracing::debug!(socket = %endpoint.path.display(), "socket closed");
        }
        for managed in &mut self.lanes {
            managed.lane.endpoint_ended(id, Instant::now());
        }
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
