//! The registration of one resource with the kubelet: its state, and what to do next.
//!
//! This module is pure. The supervisor reports events to a [`ResourceRegistration`], passes it
//! the current state of the sockets, and carries out the [`Step`] that it returns.
//!
//! Three facts about kubelets shape it (`devicemanager/plugin/v1beta1/handler.go`,
//! releases 1.26 to 1.37):
//! - A registration lasts exactly as long as the `ListAndWatch` stream that the kubelet opened
//!   for it. When the stream ends, for any reason, the kubelet forgets the plugin.
//! - Up to 1.36, a stream that ends also removes whatever is registered under the same name
//!   by then. So the streams of an old socket end *before* a new socket is registered.
//! - From 1.37 on, the kubelet refuses a socket that is still connected. So a socket that may
//!   have been registered is never registered again.
//!
//! Only the daemon that has the lock of the resource registers it.

mod bind_reason;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use self::bind_reason::BindReason;
use crate::events::EndpointId;
use crate::readiness::ResourceState;
use crate::retry::{Backoff, Failure, SocketUse};
use crate::transport::Identity;

/// How long a kubelet may take between accepting a registration and calling `ListAndWatch`.
/// It takes milliseconds, unless the kubelet lost the registration.
pub(crate) const STREAM_LIMIT: Duration = Duration::from_secs(5);

/// How long to wait after a kubelet closed a connection before registering again. The kubelet
/// handles the disconnect right after the close, under the name of the resource, whatever is
/// registered by then.
const DISCONNECT_DELAY: Duration = Duration::from_millis(50);

/// How long a socket must have lived for its end to count as a new event and not as one more
/// failure.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// The same for a stream. A kubelet ends the stream of a plugin when another plugin registers the
/// same resource, which that one may do as often as this one does.
const STREAM_STABLE_AFTER: Duration = Duration::from_secs(60);

/// After so many short streams in a row, another plugin is to be suspected.
const SUSPICIOUS_ENDS: u32 = 5;

/// How long to wait after another daemon freed the lock of the resource before registering. The
/// kubelet handles the end of the other daemon's stream under the name of the resource, whatever is
/// registered by then, and this daemon cannot observe when it has done so.
const HANDOVER_DELAY: Duration = Duration::from_millis(500);

/// The registration state of one resource.
#[derive(Debug)]
pub(crate) struct ResourceRegistration {
    endpoint: Option<EndpointId>,
    /// Replaced endpoints that a kubelet may still be connected to.
    replaced: BTreeSet<EndpointId>,
    link: Link,
    /// Why the endpoint must be replaced, where the state of the sockets does not show it.
    pending_rebind: Option<BindReason>,
    /// The kubelet that was sent the last `Register` call.
    last_kubelet: Option<Identity>,
    /// When `last_kubelet` may be sent the next `Register` call.
    retry_at: Instant,
    /// When the next socket may be bound.
    bind_at: Instant,
    /// When and why the last socket was bound.
    bound_at: Instant,
    bound_for: BindReason,
    /// How many registrations the kubelet accepted, by the reason for the socket.
    registrations: BTreeMap<BindReason, u64>,
    backoff: Backoff,
    bind_backoff: Backoff,
    /// How many streams in a row ended early.
    short_streams: u32,
    /// Whether that has become too many, and was not reported.
    is_suspicious: bool,
    lock: LockState,
    /// The state apart from other daemons.
    state: ResourceState,
}

/// The lock that lets one daemon serve the resource.
#[derive(Debug)]
enum LockState {
    /// It was not tried yet.
    Unknown,
    /// This daemon has it, and may register from this time on.
    Held { from: Instant },
    /// Another daemon has it. Contains [`ResourceState::WaitingForOtherDaemon`].
    Waiting(ResourceState),
}

/// The link to the kubelet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    None,
    Registering { kubelet: Identity, stream: Stream },
    Registered { kubelet: Identity, since: Instant, stream: Stream },
}

/// The kubelet's `ListAndWatch` stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stream {
    NotOpened,
    Open,
    ListDelivered,
    Ended,
}

/// The current state of the sockets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sockets {
    pub(crate) now: Instant,
    /// The kubelet's socket, if it exists.
    pub(crate) kubelet: Option<Identity>,
    /// Whether the resource's own socket is still where it was bound. Meaningless without one.
    pub(crate) own_in_place: bool,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Nothing, until an event or [`ResourceRegistration::wakes_at`].
    Wait,
    /// Bind a new socket, and replace the existing one if there is one.
    Bind(BindReason),
    /// Send this kubelet a `Register` call.
    Register(Identity),
}

impl ResourceRegistration {
    pub(crate) fn new(now: Instant) -> Self {
        ResourceRegistration {
            endpoint: None,
            replaced: BTreeSet::new(),
            link: Link::None,
            pending_rebind: None,
            last_kubelet: None,
            retry_at: now,
            bind_at: now,
            bound_at: now,
            bound_for: BindReason::Startup,
            registrations: BTreeMap::new(),
            backoff: Backoff::default(),
            bind_backoff: Backoff::default(),
            short_streams: 0,
            is_suspicious: false,
            lock: LockState::Unknown,
            state: ResourceState::Starting,
        }
    }

    pub(crate) fn endpoint(&self) -> Option<EndpointId> {
        self.endpoint
    }

    /// How many registrations the kubelet accepted, by the reason for the socket.
    pub(crate) fn registrations(&self) -> Vec<(&'static str, u64)> {
        self.registrations.iter().map(|(reason, count)| (reason.label(), *count)).collect()
    }

    pub(crate) fn state(&self) -> &ResourceState {
        match &self.lock {
            // Without a socket, the error of the last attempt to bind one counts.
            LockState::Waiting(state) if self.endpoint.is_some() => state,
            _ => &self.state,
        }
    }

    /// The next step in the current state.
    pub(crate) fn step(&self, sockets: &Sockets) -> Step {
        if let Some(reason) = self.bind_reason(sockets) {
            return if sockets.now >= self.bind_at { Step::Bind(reason) } else { Step::Wait };
        }
        match (self.link, sockets.kubelet) {
            (Link::None, Some(kubelet)) if self.may_register_with(kubelet, sockets.now) => {
                Step::Register(kubelet)
            }
            _ => Step::Wait,
        }
    }

    /// Why a new socket must be bound now, if it must.
    fn bind_reason(&self, sockets: &Sockets) -> Option<BindReason> {
        if self.endpoint.is_none() {
            return Some(BindReason::Startup);
        }
        if !self.holds_lock() && self.link != Link::None {
            return Some(BindReason::LockLost);
        }
        match self.pending_rebind {
            // Until the retry is due, the kubelet may still connect to the current socket.
            Some(BindReason::RegistrationFailed) => {
                return sockets
                    .kubelet
                    .filter(|k| self.is_retry_due(*k, sockets.now))
                    .map(|_| BindReason::RegistrationFailed);
            }
            Some(reason) => return Some(reason),
            None => {}
        }
        // Without a kubelet to register a new socket with, an open stream on a socket that lost
        // its name is worth keeping: the kubelet needs no name to hold the stream open.
        if !sockets.own_in_place && (sockets.kubelet.is_some() || !self.has_stream()) {
            return Some(BindReason::SocketLost);
        }
        match (self.link, sockets.kubelet) {
            (
                Link::Registering { kubelet, .. } | Link::Registered { kubelet, .. },
                Some(present),
            ) if kubelet != present => Some(BindReason::KubeletReplaced),
            (Link::Registered { since, stream: Stream::NotOpened, .. }, _)
                if sockets.now >= since + STREAM_LIMIT =>
            {
                Some(BindReason::NoStream)
            }
            _ => None,
        }
    }

    /// Whether this kubelet's retry delay has passed. A new kubelet has no delay.
    fn is_retry_due(&self, kubelet: Identity, now: Instant) -> bool {
        self.last_kubelet != Some(kubelet) || now >= self.retry_at
    }

    /// Whether this kubelet may be sent a `Register` call. The kubelet that was sent the last
    /// one must first close its connections to the replaced sockets.
    fn may_register_with(&self, kubelet: Identity, now: Instant) -> bool {
        matches!(self.lock, LockState::Held { from } if now >= from)
            && self.is_retry_due(kubelet, now)
            && (self.last_kubelet != Some(kubelet) || self.replaced.is_empty())
    }

    fn has_stream(&self) -> bool {
        match self.link {
            Link::None => false,
            Link::Registering { stream, .. } | Link::Registered { stream, .. } => {
                matches!(stream, Stream::Open | Stream::ListDelivered)
            }
        }
    }

    /// Whether the resource is registered or another daemon's, and nothing is pending.
    pub(crate) fn is_settled(&self) -> bool {
        let registered = matches!(self.link, Link::Registered { .. }) && self.has_stream();
        let waits = matches!(self.lock, LockState::Waiting(_)) && self.link == Link::None;
        (registered || waits) && self.endpoint.is_some() && self.pending_rebind.is_none()
    }

    /// When [`Self::step`] may return another step without any event.
    pub(crate) fn wakes_at(&self, now: Instant) -> Option<Instant> {
        let stream_limit = match self.link {
            Link::Registered { since, stream: Stream::NotOpened, .. } => Some(since + STREAM_LIMIT),
            _ => None,
        };
        let handover = match self.lock {
            LockState::Held { from } => Some(from),
            LockState::Unknown | LockState::Waiting(_) => None,
        };
        [Some(self.retry_at), Some(self.bind_at), stream_limit, handover]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .min()
    }

    /// A socket was bound and replaces the previous one.
    pub(crate) fn bound(&mut self, endpoint: EndpointId, reason: BindReason, now: Instant) {
        self.replaced.extend(self.endpoint.replace(endpoint));
        self.link = Link::None;
        self.pending_rebind = None;
        // A socket that is lost repeatedly is not replaced as fast as it is lost. A kubelet
        // that starts deletes one socket and not the one that replaces it.
        let lost_again = reason == BindReason::SocketLost && self.bound_for == reason;
        if lost_again && now < self.bound_at + STABLE_AFTER {
            self.bind_at = now + self.bind_backoff.after(Failure::Unreachable);
        } else {
            self.bind_backoff.reset();
        }
        (self.bound_at, self.bound_for) = (now, reason);
        if reason == BindReason::NoStream {
            self.retry_at = now + self.backoff.after(Failure::Refused);
        }
        self.wait_for_kubelet(now, None);
    }

    /// Binding a socket failed. The previous socket stays.
    pub(crate) fn bind_failed(&mut self, error: String, now: Instant) {
        self.bind_at = now + self.bind_backoff.after(Failure::Unreachable);
        if !self.has_stream() {
            self.wait_for_kubelet(now, Some(error));
        }
    }

    /// A `Register` call is being sent to this kubelet.
    pub(crate) fn registering(&mut self, kubelet: Identity) {
        if self.last_kubelet != Some(kubelet) {
            self.backoff.reset();
            self.short_streams = 0;
        }
        self.last_kubelet = Some(kubelet);
        self.link = Link::Registering { kubelet, stream: Stream::NotOpened };
    }

    /// The kubelet accepted the registration.
    pub(crate) fn registered(&mut self, now: Instant) {
        let Link::Registering { kubelet, stream } = self.link else { return };
        self.link = Link::Registered { kubelet, since: now, stream };
        *self.registrations.entry(self.bound_for).or_default() += 1;
        match stream {
            Stream::NotOpened | Stream::Open => self.state = ResourceState::Registered,
            Stream::ListDelivered => self.state = ResourceState::ListDelivered,
            Stream::Ended => self.stream_ended(now),
        }
    }

    /// The kubelet could not be reached, refused the registration, or did not answer.
    pub(crate) fn registration_failed(&mut self, failure: RegistrationFailure, now: Instant) {
        if self.has_stream() {
            // Whatever the answer was: a kubelet that called ListAndWatch has registered the plugin.
            self.registered(now);
            return;
        }
        self.link = Link::None;
        self.retry_at = now + self.backoff.after(failure.failure);
        if failure.socket == SocketUse::MaybeRegistered {
            self.pending_rebind = Some(BindReason::RegistrationFailed);
        }
        self.wait_for_kubelet(now, Some(failure.error));
    }

    /// The kubelet called `ListAndWatch`.
    pub(crate) fn stream_opened(&mut self, now: Instant) {
        match (&mut self.link, self.last_kubelet) {
            (Link::Registering { stream, .. } | Link::Registered { stream, .. }, _) => {
                *stream = Stream::Open;
            }
            (Link::None, Some(kubelet)) => {
                // The kubelet registered the plugin after we stopped waiting for its answer.
                self.link = Link::Registered { kubelet, since: now, stream: Stream::Open };
                self.state = ResourceState::Registered;
                self.pending_rebind = None;
            }
            (Link::None, None) => {}
        }
    }

    /// The kubelet received the whole device list.
    pub(crate) fn list_delivered(&mut self) {
        match &mut self.link {
            Link::Registering { stream, .. } => *stream = Stream::ListDelivered,
            Link::Registered { stream, .. } => {
                *stream = Stream::ListDelivered;
                self.state = ResourceState::ListDelivered;
            }
            Link::None => {}
        }
    }

    /// The kubelet's stream ended, and the registration with it.
    pub(crate) fn stream_ended(&mut self, now: Instant) {
        match &mut self.link {
            Link::None => {}
            Link::Registering { stream, .. } => *stream = Stream::Ended,
            Link::Registered { since, .. } => {
                if now >= *since + STREAM_STABLE_AFTER {
                    self.backoff.reset();
                    self.short_streams = 0;
                }
                self.short_streams += 1;
                self.is_suspicious |= self.short_streams == SUSPICIOUS_ENDS;
                self.link = Link::None;
                self.pending_rebind = Some(BindReason::StreamEnded);
                self.retry_at = now + self.backoff.after(Failure::Refused);
                self.wait_for_kubelet(now, Some(BindReason::StreamEnded.as_str().to_owned()));
            }
        }
    }

    /// How many streams the kubelet ended early, once it is to be reported: another plugin is to be
    /// suspected.
    pub(crate) fn take_suspicion(&mut self) -> Option<u32> {
        std::mem::take(&mut self.is_suspicious).then_some(self.short_streams)
    }

    /// An endpoint has closed all its connections.
    pub(crate) fn endpoint_ended(&mut self, endpoint: EndpointId, now: Instant) {
        if self.endpoint == Some(endpoint) {
            self.pending_rebind = Some(BindReason::EndpointEnded);
        }
        if self.replaced.remove(&endpoint) {
            self.retry_at = self.retry_at.max(now + DISCONNECT_DELAY);
        }
    }

    /// Whether this daemon may serve the resource.
    pub(crate) fn holds_lock(&self) -> bool {
        matches!(self.lock, LockState::Held { .. })
    }

    /// Whether the lock is held, or was tried.
    pub(crate) fn has_tried_lock(&self) -> bool {
        !matches!(self.lock, LockState::Unknown)
    }

    /// This daemon took the lock of the resource. Returns whether it has waited for it.
    pub(crate) fn lock_taken(&mut self, now: Instant) -> bool {
        if self.holds_lock() {
            return false;
        }
        let has_waited = matches!(self.lock, LockState::Waiting(_));
        let delay = if has_waited { HANDOVER_DELAY } else { Duration::ZERO };
        self.lock = LockState::Held { from: now + delay };
        has_waited
    }

    /// Another daemon has the lock of the resource. Returns whether that is new.
    pub(crate) fn lock_refused(&mut self, holder: String, now: Instant) -> bool {
        let (since, is_new) = match &self.lock {
            LockState::Waiting(ResourceState::WaitingForOtherDaemon { since, .. }) => {
                (*since, false)
            }
            _ => (now, true),
        };
        self.lock = LockState::Waiting(ResourceState::WaitingForOtherDaemon { since, holder });
        is_new
    }

    /// The lock cannot be tried.
    pub(crate) fn lock_failed(&mut self, error: String, now: Instant) {
        self.lock = LockState::Unknown;
        self.wait_for_kubelet(now, Some(error));
    }

    /// Another object serves the resource from now on.
    pub(crate) fn resource_replaced(&mut self) {
        self.pending_rebind = Some(BindReason::ResourceReplaced);
    }

    /// The resource is removed. Returns the endpoint to close, if there is one.
    pub(crate) fn end(&mut self) -> Option<EndpointId> {
        let endpoint = self.endpoint.take();
        self.replaced.extend(endpoint);
        (self.link, self.pending_rebind, self.state) = (Link::None, None, ResourceState::Starting);
        endpoint
    }

    /// Whether the resource was removed and the kubelet has handled all its disconnects.
    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        self.endpoint.is_none() && self.replaced.is_empty() && now >= self.retry_at
    }

    /// The kubelet's socket does not exist or cannot be inspected.
    pub(crate) fn set_last_error(&mut self, error: String) {
        if let ResourceState::WaitingForKubelet { last_error, .. } = &mut self.state {
            *last_error = Some(error);
        }
    }

    fn wait_for_kubelet(&mut self, now: Instant, error: Option<String>) {
        match &mut self.state {
            ResourceState::WaitingForKubelet { last_error, .. } => {
                if error.is_some() {
                    *last_error = error;
                }
            }
            state => {
                *state = ResourceState::WaitingForKubelet { since: now, last_error: error };
            }
        }
    }
}

/// A failed registration attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RegistrationFailure {
    pub(crate) failure: Failure,
    pub(crate) socket: SocketUse,
    /// The error with all its causes, as text.
    pub(crate) error: String,
}

#[cfg(test)]
mod tests;
