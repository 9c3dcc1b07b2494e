//! The server side of a connection.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tonic::body::Body;

use super::Panicked;
use super::byte_stream::{AnyStream, ByteStream};
use super::calls::Calls;
use super::close_signal::CloseSignal;
use super::rewriting_stream::RewritingStream;
use super::unwritten::{RecordedBody, SLICE, UnreadTimer, Unwritten};
use crate::error_chain::ErrorChain;

/// The limits of one connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The maximum number of concurrent calls.
    pub calls: u32,
    /// The maximum size of the headers of one call, in bytes.
    pub header_bytes: u32,
    /// How long a connection may stay open without a call, from the moment it was accepted.
    pub idle: Duration,
    /// How long a peer may leave response data unread: a slice of at most 16 KiB, on any stream.
    pub unread: Duration,
    /// How long a peer may take to close a connection after it was sent GOAWAY.
    pub linger: Duration,
}

/// The flow-control window of each stream and each connection: the initial one of HTTP/2, which
/// cannot be reduced. Nothing is gained by a larger one between processes of the same host.
const WINDOW: u32 = 64 * 1024 - 1;

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits {
            // A kubelet makes one call besides its stream.
            calls: 16,
            // A kubelet sends less than 1 KiB.
            header_bytes: 8 * 1024,
            idle: Duration::from_secs(30),
            // A kubelet that is suspended for longer must register the plugin again, if the data
            // exceeds what the socket holds.
            unread: Duration::from_secs(30),
            linger: Duration::from_secs(1),
        }
    }
}

/// Serves calls until the peer closes the connection or does not read, the connection is idle for
/// too long, or the close signal arrives and the running calls have ended.
///
/// # Errors
/// A call panicked. A lost connection or invalid data from the peer is not an error, and is only
/// logged.
pub async fn serve_connection<S>(
    io: impl ByteStream,
    service: S,
    close_signal: CloseSignal,
    limits: ConnectionLimits,
    task: &str,
) -> Result<(), Panicked>
where
    S: tower_service::Service<
            Request<Incoming>,
            Response = Response<Body>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static,
{
    let answer = move |request| -> Answer { Box::pin(service.clone().call(request)) };
    serve_any(Box::new(io), Box::new(answer), close_signal, limits, task).await
}

/// The answer to a call.
type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// A service of any kind, so that HTTP/2 is compiled once and not for each kind.
type AnyService = Box<dyn Fn(Request<Incoming>) -> Answer + Send>;

async fn serve_any(
    io: AnyStream,
    service: AnyService,
    mut close_signal: CloseSignal,
    limits: ConnectionLimits,
    task: &str,
) -> Result<(), Panicked> {
    let calls = Calls::default();
    let unwritten = Unwritten::default();
    let mut unread = UnreadTimer::new(unwritten.clone(), limits.unread);
    let service = service_fn(move |request| {
        let (response, unwritten) = (service(request), unwritten.clone());
        async {
            Ok::<_, Infallible>(response.await?.map(|body| RecordedBody::new(body, unwritten)))
        }
    });
    let mut connection = pin!(
        http2::Builder::new(calls.clone())
            .timer(TokioTimer::new())
            .auto_date_header(false)
            .max_concurrent_streams(limits.calls)
            .max_header_list_size(limits.header_bytes)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buf_size(SLICE)
            .serve_connection(TokioIo::new(RewritingStream::new(io)), service)
    );
    let mut close_requested = pin!(close_signal.requested());
    let mut idle = IdleTimer::new(limits.idle);
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = poll_all(connection.as_mut(), &calls, &mut unread, cx, task) {
            return Poll::Ready(Some(ended));
        }
        let close =
            idle.poll(cx, &calls).is_ready() || close_requested.as_mut().poll(cx).is_ready();
        if close { Poll::Ready(None) } else { Poll::Pending }
    });
    if let Some(ended) = ended.await {
        return ended;
    }
    connection.as_mut().graceful_shutdown();
    let mut linger: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|cx| {
        if let Poll::Ready(ended) = poll_all(connection.as_mut(), &calls, &mut unread, cx, task) {
            return Poll::Ready(ended);
        }
        if calls.running() > 0 {
            return Poll::Pending;
        }
        let linger = linger.get_or_insert_with(|| Box::pin(sleep(limits.linger)));
        linger.as_mut().poll(cx).map(|()| Ok(()))
    })
    .await
}

/// Polls a connection, then its calls, then whether its peer reads. Ready once the connection has
/// ended, a call has panicked, or the peer has not read for too long.
fn poll_all(
    connection: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    calls: &Calls,
    unread: &mut UnreadTimer,
    cx: &mut Context<'_>,
    task: &str,
) -> Poll<Result<(), Panicked>> {
    let ended = connection.poll(cx);
    if let Poll::Ready(panicked) = calls.poll_panicked(cx, task) {
        return Poll::Ready(Err(panicked));
    }
    if let Poll::Ready(result) = ended {
        if let Err(error) = result {
            tracing::debug!(task, error = %ErrorChain(&error), "connection failed");
        }
        return Poll::Ready(Ok(()));
    }
    unread.poll(cx).map(|()| {
        tracing::debug!(task, "closing connection: peer does not read");
        Ok(())
    })
}

/// Ready once a connection had no call for a whole period.
///
/// The timer is stopped while a call is running, so a connection with an open stream causes no
/// wake-ups.
struct IdleTimer {
    period: Duration,
    sleep: Pin<Box<Sleep>>,
    /// How many calls were started before the period began. `None` while the timer is stopped.
    calls_before: Option<u64>,
}

impl IdleTimer {
    fn new(period: Duration) -> Self {
        IdleTimer {
            period,
            sleep: Box::pin(sleep_until(Instant::now() + period)),
            calls_before: Some(0),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>, calls: &Calls) -> Poll<()> {
        loop {
            let Some(calls_before) = self.calls_before else {
                if calls.running() > 0 {
                    return Poll::Pending;
                }
                let end = Instant::now() + self.period;
                self.sleep.as_mut().reset(end);
                self.calls_before = Some(calls.total());
                continue;
            };
            std::task::ready!(self.sleep.as_mut().poll(cx));
            if calls.running() == 0 && calls.total() == calls_before {
                return Poll::Ready(());
            }
            self.calls_before = None;
        }
    }
}
