//! What the clients of the plugin's sockets may use at the same time, in the whole process.
//!
//! The kubelet is not limited by what others use: its connection is known by its stream.

use std::convert::Infallible;
use std::future::ready;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tower::Service;

/// The connections that all sockets share, and those of each socket: a kubelet opens one, `status`
/// another one. At the limit, further connections wait.
const CONNECTIONS: usize = 60;
const CONNECTIONS_OF_SOCKET: usize = 4;

/// The calls of clients that are not the kubelet, from the first byte of the request until the last
/// byte of the response is taken. A response can have some megabytes, and so can a list.
const CALLS: usize = 32;

/// The length of a request that needs no budget, in bytes: about 200 device IDs.
const SHORT: usize = 16 * 1024;

/// The bytes of all longer requests of these clients. A decoded device ID occupies up to 20 times as
/// many bytes as its encoded form.
const LONG_BYTES: usize = 6 * 1024 * 1024;

/// The limits of the process.
#[derive(Clone)]
pub(crate) struct Limits {
    connections: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    long_bytes: Arc<Semaphore>,
    /// Long computations run one at a time: one of the kubelet, and one of all others.
    pub(crate) kubelet_turn: Arc<Semaphore>,
    pub(crate) turn: Arc<Semaphore>,
}

impl Default for Limits {
    fn default() -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Limits {
            connections: semaphore(CONNECTIONS),
            calls: semaphore(CALLS),
            long_bytes: semaphore(LONG_BYTES),
            kubelet_turn: semaphore(1),
            turn: semaphore(1),
        }
    }
}

/// The connections of one socket.
pub(crate) struct ConnectionLimit {
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

impl Limits {
    /// The limit for the connections of a new socket.
    pub(crate) fn of_socket(&self) -> ConnectionLimit {
        ConnectionLimit {
            own: Arc::new(Semaphore::new(CONNECTIONS_OF_SOCKET)),
            shared: Arc::clone(&self.connections),
        }
    }
}

impl ConnectionLimit {
    /// Waits until one more connection is within the limit. Cancel safe.
    pub(crate) async fn one_more(&self) -> OwnedSemaphorePermit {
        let permit = tokio::select! {
            biased;
            own = Arc::clone(&self.own).acquire_owned() => own,
            shared = Arc::clone(&self.shared).acquire_owned() => shared,
        };
        permit.expect("the semaphores are never closed")
    }
}

/// Who is at the other end of a connection.
#[derive(Default)]
pub(crate) struct Peer {
    is_kubelet: AtomicBool,
}

impl Peer {
    /// Marks the connection as the kubelet's.
    pub(crate) fn set_kubelet(&self) {
        self.is_kubelet.store(true, Ordering::Relaxed);
    }

    /// Whether the kubelet's stream was opened on this connection.
    pub(crate) fn is_kubelet(&self) -> bool {
        self.is_kubelet.load(Ordering::Relaxed)
    }
}

/// A service within the limits.
#[derive(Clone)]
pub(crate) struct Limited<S> {
    pub(crate) inner: S,
    pub(crate) limits: Limits,
    /// Whether the next stream is the kubelet's, and so may be the call.
    pub(crate) kubelet_expected: Arc<AtomicBool>,
}

impl<S> Service<Request<Body>> for Limited<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let peer = request.extensions().get::<Arc<Peer>>();
        let expected = self.kubelet_expected.load(Ordering::Relaxed);
        if expected || peer.is_some_and(|peer| peer.is_kubelet()) {
            return Box::pin(self.inner.call(request));
        }
        let Ok(call) = Arc::clone(&self.limits.calls).try_acquire_owned() else {
            let refused = Status::resource_exhausted("too many calls at the same time; try again");
            return Box::pin(ready(Ok(refused.into_http())));
        };
        let long_bytes = Arc::clone(&self.limits.long_bytes);
        let used = Arc::new(Used { _call: call, long: Mutex::default(), long_bytes });
        let metered = |body, short_left, used: &Arc<Used>| {
            Body::new(Metered { body, short_left, used: Arc::clone(used) })
        };
        let response = self.inner.call(request.map(|body| metered(body, SHORT, &used)));
        Box::pin(async move { Ok(response.await?.map(|body| metered(body, usize::MAX, &used))) })
    }
}

/// What one call uses, until both its bodies are dropped.
struct Used {
    _call: OwnedSemaphorePermit,
    long: Mutex<Option<OwnedSemaphorePermit>>,
    long_bytes: Arc<Semaphore>,
}

impl Used {
    /// Adds bytes of a long request.
    fn add(&self, bytes: usize) -> Result<(), Status> {
        let more = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| Arc::clone(&self.long_bytes).try_acquire_many_owned(bytes).ok());
        let more = more.ok_or_else(|| {
            Status::resource_exhausted("too many large requests at the same time; try again")
        })?;
        match &mut *self.long.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(used) => used.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

/// A body whose bytes are counted beyond the first ones.
struct Metered {
    body: Body,
    short_left: usize,
    used: Arc<Used>,
}

impl http_body::Body for Metered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            let long = data.len().saturating_sub(self.short_left);
            self.short_left = self.short_left.saturating_sub(data.len());
            if long > 0
                && let Err(refused) = self.used.add(long)
            {
                return Poll::Ready(Some(Err(refused)));
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
