//! One resource's way to the kubelet and back: what is known, and what to do next.
//!
//! Everything here is a value: the supervisor tells a [`Lane`] what happened, shows it
//! what the sockets look like, and does the [`Step`] it names.
//!
//! Three things about kubelets shape it (`devicemanager/plugin/v1beta1/handler.go`,
//! releases 1.26 to 1.37):
//! - a registration lives exactly as long as the stream that the kubelet opened for it.
//!   Once that ends, for whatever reason, the kubelet forgets the plugin;
//! - until 1.36, a stream that ends takes with it whatever is registered under the same
//!   name by then. So an old socket's streams end *before* a new socket is registered;
//! - from 1.37 on, a socket that is still connected is refused. So a socket that may have
//!   been registered is never registered again.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::events::EndpointId;
use crate::readiness::ResourceState;
use crate::retry::{Backoff, Failure};
use crate::transport::Identity;

/// How long a kubelet may take from accepting a resource to asking for its list. It
/// takes milliseconds, unless the registration was lost on its side.
pub(crate) const STREAM_LIMIT: Duration = Duration::from_secs(5);

/// How long a kubelet that has closed a connection is given to note so: it does that
/// right after, under the name of the resource, whatever is registered by then.
const SETTLE: Duration = Duration::from_millis(50);

/// How long a stream or a socket must have lived for its end to be news rather than one
/// more failure.
const STABLE: Duration = Duration::from_secs(10);

/// What is known about one resource.
#[derive(Debug)]
pub(crate) struct Lane {
    endpoint: Option<EndpointId>,
    /// Closed endpoints that a kubelet may still be connected to.
    predecessors: BTreeSet<EndpointId>,
    link: Link,
    /// Why the endpoint must be replaced, where the sockets alone do not show it.
    renewal: Option<Cause>,
    /// The kubelet that was asked last.
    asked: Option<Identity>,
    /// When the kubelet that was asked last may be asked again.
    retry_at: Instant,
    /// When a socket may be made again.
    bind_at: Instant,
    /// When and why the last one was made.
    bound_at: Instant,
    bound_for: Cause,
    backoff: Backoff,
    bind_backoff: Backoff,
    state: ResourceState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    None,
    Registering { kubelet: Identity, stream: Stream },
    Registered { kubelet: Identity, since: Instant, stream: Stream },
}

/// The kubelet's stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stream {
    Awaited,
    Open,
    Taken,
    Ended,
}

/// What the sockets look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) now: Instant,
    /// The kubelet's socket, where there is one.
    pub(crate) kubelet: Option<Identity>,
    /// Whether the lane's own socket is where it was made. Meaningless without one.
    pub(crate) own_in_place: bool,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Nothing, before something happens or [`Lane::wakes_at`].
    Wait,
    /// Make a socket; where there is one, replace it.
    Bind(Cause),
    /// Ask this kubelet to call the socket.
    Register(Identity),
}

/// Why a socket is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// There is none.
    Start,
    /// Ours was deleted or replaced.
    SocketLost,
    /// The kubelet's socket is another one than when we registered.
    NewKubelet,
    /// The kubelet's stream ended.
    StreamEnded,
    /// The kubelet accepted the resource and never asked for its list.
    NoStream,
    /// The kubelet refused or did not answer. It may have called the socket all the same,
    /// and should not be asked to call it twice.
    Retry,
    /// The socket stopped accepting connections.
    EndpointEnded,
}

impl Cause {
    /// The cause in words, for the log.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Cause::Start => "start",
            Cause::SocketLost => "own socket deleted or replaced",
            Cause::NewKubelet => "new kubelet socket",
            Cause::StreamEnded => "the kubelet's stream ended",
            Cause::NoStream => "the kubelet never asked for the list",
            Cause::Retry => "the kubelet did not register the last one",
            Cause::EndpointEnded => "own socket stopped accepting",
        }
    }
}

impl Lane {
    pub(crate) fn new(now: Instant) -> Self {
        Lane {
            endpoint: None,
            predecessors: BTreeSet::new(),
            link: Link::None,
            renewal: None,
            asked: None,
            retry_at: now,
            bind_at: now,
            bound_at: now,
            bound_for: Cause::Start,
            backoff: Backoff::default(),
            bind_backoff: Backoff::default(),
            state: ResourceState::Starting,
        }
    }

    pub(crate) fn endpoint(&self) -> Option<EndpointId> {
        self.endpoint
    }

    pub(crate) fn state(&self) -> &ResourceState {
        &self.state
    }

    /// What to do next, as things are.
    pub(crate) fn step(&self, view: &View) -> Step {
        if let Some(cause) = self.cause(view) {
            return if view.now >= self.bind_at { Step::Bind(cause) } else { Step::Wait };
        }
        match (self.link, view.kubelet) {
            (Link::None, Some(kubelet)) if self.may_ask(kubelet, view.now) => {
                Step::Register(kubelet)
            }
            _ => Step::Wait,
        }
    }

    /// Why a socket is to be made now.
    fn cause(&self, view: &View) -> Option<Cause> {
        if self.endpoint.is_none() {
            return Some(Cause::Start);
        }
        match self.renewal {
            // Until then the kubelet may still come back to the one there is.
            Some(Cause::Retry) => {
                return view.kubelet.filter(|k| self.is_due(*k, view.now)).map(|_| Cause::Retry);
            }
            Some(cause) => return Some(cause),
            None => {}
        }
        // Without a kubelet to register a new socket with, a stream on a nameless one is
        // all we have: the kubelet holds it open and needs no name.
        if !view.own_in_place && (view.kubelet.is_some() || !self.has_stream()) {
            return Some(Cause::SocketLost);
        }
        match (self.link, view.kubelet) {
            (
                Link::Registering { kubelet, .. } | Link::Registered { kubelet, .. },
                Some(present),
            ) if kubelet != present => Some(Cause::NewKubelet),
            (Link::Registered { since, stream: Stream::Awaited, .. }, _)
                if view.now >= since + STREAM_LIMIT =>
            {
                Some(Cause::NoStream)
            }
            _ => None,
        }
    }

    /// Whether this kubelet's delay has passed. One that was not asked before has none.
    fn is_due(&self, kubelet: Identity, now: Instant) -> bool {
        self.asked != Some(kubelet) || now >= self.retry_at
    }

    /// Whether this kubelet may be asked to register a socket: the one that was asked
    /// before must let go of our earlier sockets first.
    fn may_ask(&self, kubelet: Identity, now: Instant) -> bool {
        self.is_due(kubelet, now) && (self.asked != Some(kubelet) || self.predecessors.is_empty())
    }

    fn has_stream(&self) -> bool {
        match self.link {
            Link::None => false,
            Link::Registering { stream, .. } | Link::Registered { stream, .. } => {
                matches!(stream, Stream::Open | Stream::Taken)
            }
        }
    }

    /// Whether there is nothing to wait for but changes.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.link, Link::Registered { .. }) && self.has_stream() && self.renewal.is_none()
    }

    /// When [`Self::step`] may say something else without anything happening.
    pub(crate) fn wakes_at(&self, now: Instant) -> Option<Instant> {
        let stream_limit = match self.link {
            Link::Registered { since, stream: Stream::Awaited, .. } => Some(since + STREAM_LIMIT),
            _ => None,
        };
        [Some(self.retry_at), Some(self.bind_at), stream_limit]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .min()
    }

    /// A socket was made, in the place of the one there was.
    pub(crate) fn bound(&mut self, endpoint: EndpointId, cause: Cause, now: Instant) {
        self.predecessors.extend(self.endpoint.replace(endpoint));
        self.link = Link::None;
        self.renewal = None;
        // A socket that is lost again and again is not made anew as fast as it is lost. A
        // kubelet that starts deletes one, and not the next.
        let lost_again = cause == Cause::SocketLost && self.bound_for == cause;
        if lost_again && now < self.bound_at + STABLE {
            self.bind_at = now + self.bind_backoff.after(Failure::Unreachable);
        } else {
            self.bind_backoff.reset();
        }
        (self.bound_at, self.bound_for) = (now, cause);
        if cause == Cause::NoStream {
            self.retry_at = now + self.backoff.after(Failure::Refused);
        }
        self.wait(now, None);
    }

    /// No socket could be made. What there was stays.
    pub(crate) fn bind_failed(&mut self, error: String, now: Instant) {
        self.bind_at = now + self.bind_backoff.after(Failure::Unreachable);
        if !self.has_stream() {
            self.wait(now, Some(error));
        }
    }

    /// A kubelet is being asked.
    pub(crate) fn asking(&mut self, kubelet: Identity) {
        if self.asked != Some(kubelet) {
            self.backoff.reset();
        }
        self.asked = Some(kubelet);
        self.link = Link::Registering { kubelet, stream: Stream::Awaited };
    }

    /// The kubelet has accepted the resource.
    pub(crate) fn registered(&mut self, now: Instant) {
        let Link::Registering { kubelet, stream } = self.link else { return };
        self.link = Link::Registered { kubelet, since: now, stream };
        match stream {
            Stream::Awaited | Stream::Open => self.state = ResourceState::Registered,
            Stream::Taken => self.state = ResourceState::ListDelivered,
            Stream::Ended => self.stream_ended(now),
        }
    }

    /// The kubelet could not be asked, or said no, or nothing.
    pub(crate) fn not_registered(&mut self, failure: NotRegistered, now: Instant) {
        if self.has_stream() {
            // Whatever it said: a kubelet that has asked for the list has registered us.
            self.registered(now);
            return;
        }
        self.link = Link::None;
        self.retry_at = now + self.backoff.after(failure.failure);
        if failure.socket == Socket::Used {
            self.renewal = Some(Cause::Retry);
        }
        self.wait(now, Some(failure.error));
    }

    /// The kubelet has asked for the list.
    pub(crate) fn stream_opened(&mut self, now: Instant) {
        match (&mut self.link, self.asked) {
            (Link::Registering { stream, .. } | Link::Registered { stream, .. }, _) => {
                *stream = Stream::Open;
            }
            (Link::None, Some(kubelet)) => {
                // It has registered us after we gave up on its answer.
                self.link = Link::Registered { kubelet, since: now, stream: Stream::Open };
                self.state = ResourceState::Registered;
                self.renewal = None;
            }
            (Link::None, None) => {}
        }
    }

    /// The kubelet has made room for the whole list.
    pub(crate) fn list_taken(&mut self) {
        match &mut self.link {
            Link::Registering { stream, .. } => *stream = Stream::Taken,
            Link::Registered { stream, .. } => {
                *stream = Stream::Taken;
                self.state = ResourceState::ListDelivered;
            }
            Link::None => {}
        }
    }

    /// The kubelet's stream is gone, and the registration with it.
    pub(crate) fn stream_ended(&mut self, now: Instant) {
        match &mut self.link {
            Link::None => {}
            Link::Registering { stream, .. } => *stream = Stream::Ended,
            Link::Registered { since, .. } => {
                if now >= *since + STABLE {
                    self.backoff.reset();
                }
                self.link = Link::None;
                self.renewal = Some(Cause::StreamEnded);
                self.retry_at = now + self.backoff.after(Failure::Unreachable);
                self.wait(now, Some(Cause::StreamEnded.as_str().to_owned()));
            }
        }
    }

    /// A socket serves nobody any more.
    pub(crate) fn endpoint_ended(&mut self, endpoint: EndpointId, now: Instant) {
        if self.endpoint == Some(endpoint) {
            self.renewal = Some(Cause::EndpointEnded);
        }
        if self.predecessors.remove(&endpoint) {
            self.retry_at = self.retry_at.max(now + SETTLE);
        }
    }

    /// The kubelet's socket could not be looked at, or is not there.
    pub(crate) fn note(&mut self, error: String) {
        if let ResourceState::WaitingForKubelet { last_error, .. } = &mut self.state {
            *last_error = Some(error);
        }
    }

    fn wait(&mut self, now: Instant, error: Option<String>) {
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

/// A registration that did not come about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NotRegistered {
    pub(crate) failure: Failure,
    pub(crate) socket: Socket,
    /// In words, causes included.
    pub(crate) error: String,
}

/// Whether the kubelet may have heard of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Socket {
    /// It has not.
    Unused,
    /// It may have.
    Used,
}

#[cfg(test)]
mod tests;
