//! The answering end of a connection.

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
use super::authority::Acceptable;
use super::calls::Calls;
use super::closing::Closing;
use crate::chain::Chain;

/// What one connection may ask for.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Calls at once.
    pub calls: u32,
    /// Bytes of one call's headers.
    pub header_bytes: u32,
    /// How long a connection may stay open with no call on it, from its first byte on.
    pub idle: Duration,
    /// How long a peer may take to close a connection after it was told that it ends.
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

/// Answers calls until the peer closes the connection, it was idle for too long, or
/// `closing` is asked for and the calls that run have ended.
///
/// # Errors
/// A call panicked. That a connection is lost or carries garbage is no error of ours
/// and only logged.
pub async fn serve_connection<Io, S>(
    io: Io,
    service: S,
    mut closing: Closing,
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
            .serve_connection(TokioIo::new(Acceptable::new(io)), service)
    );
    let mut closed = pin!(closing.asked());
    let mut idle = IdleTimer::new(limits.idle);
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = poll_both(connection.as_mut(), &calls, cx, task) {
            return Poll::Ready(Some(ended));
        }
        let close = idle.poll(cx, &calls).is_ready() || closed.as_mut().poll(cx).is_ready();
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

/// Moves a connection and looks after its calls, in this order. Ready once the connection
/// is at its end, or a call has panicked.
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
            tracing::debug!(task, error = %Chain(&error), "connection lost");
        }
        Ok(())
    })
}

/// Ready once a connection had no call for a whole period.
///
/// While a call runs it does not tick: a connection that only carries a stream wakes
/// nobody up.
struct IdleTimer {
    period: Duration,
    sleep: Pin<Box<Sleep>>,
    /// How many calls had been started when the period began; none while it does not run.
    began_at: Option<u64>,
}

impl IdleTimer {
    fn new(period: Duration) -> Self {
        IdleTimer {
            period,
            sleep: Box::pin(sleep_until(Instant::now() + period)),
            began_at: Some(0),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>, calls: &Calls) -> Poll<()> {
        loop {
            let Some(began_at) = self.began_at else {
                if calls.running() > 0 {
                    return Poll::Pending;
                }
                let end = Instant::now() + self.period;
                self.sleep.as_mut().reset(end);
                self.began_at = Some(calls.total());
                continue;
            };
            std::task::ready!(self.sleep.as_mut().poll(cx));
            if calls.running() == 0 && calls.total() == began_at {
                return Poll::Ready(());
            }
            self.began_at = None;
        }
    }
}
