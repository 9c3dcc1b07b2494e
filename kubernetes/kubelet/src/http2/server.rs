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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tonic::body::Body;

use super::Panicked;
use super::calls::Calls;
use super::close_signal::CloseSignal;
use super::rewriting_stream::RewritingStream;
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
    /// How long a peer may take to close a connection after it was sent GOAWAY.
    pub linger: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits {
            calls: 128,
            header_bytes: 16 * 1024,
            idle: Duration::from_secs(30),
            linger: Duration::from_secs(1),
        }
    }
}

/// Serves calls until the peer closes the connection, the connection is idle for too long, or the
/// close signal arrives and the running calls have ended.
///
/// # Errors
/// A call panicked. A lost connection or invalid data from the peer is not an error, and is only
/// logged.
pub async fn serve_connection<Io, S>(
    io: Io,
    service: S,
    mut close_signal: CloseSignal,
    limits: ConnectionLimits,
    task: &str,
) -> Result<(), Panicked>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: tower_service::Service<
            Request<Incoming>,
            Response = Response<Body>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone,
{
    let calls = Calls::default();
    let service = service_fn(move |request| service.clone().call(request));
    let mut connection = pin!(
        http2::Builder::new(calls.clone())
            .timer(TokioTimer::new())
            .auto_date_header(false)
            .max_concurrent_streams(limits.calls)
            .max_header_list_size(limits.header_bytes)
            .serve_connection(TokioIo::new(RewritingStream::new(io)), service)
    );
    let mut close_requested = pin!(close_signal.requested());
    let mut idle = IdleTimer::new(limits.idle);
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = poll_both(connection.as_mut(), &calls, cx, task) {
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
        if let Poll::Ready(ended) = poll_both(connection.as_mut(), &calls, cx, task) {
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

/// Polls a connection and then its calls. Ready once the connection has ended or a call has
/// panicked.
fn poll_both(
    connection: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    calls: &Calls,
    cx: &mut Context<'_>,
    task: &str,
) -> Poll<Result<(), Panicked>> {
    let ended = connection.poll(cx);
    if let Poll::Ready(panicked) = calls.poll_panicked(cx, task) {
        return Poll::Ready(Err(panicked));
    }
    ended.map(|result| {
        if let Err(error) = result {
            tracing::debug!(task, error = %ErrorChain(&error), "connection failed");
        }
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
