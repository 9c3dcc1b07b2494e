//! A connection to a socket: the calls of a client, and closing it.

use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::text::error_chain;

/// How many requests of a connection may be received at the same time. Each may keep a message of
/// [`MESSAGE_LIMIT`](crate::MESSAGE_LIMIT) bytes in memory until it is complete.
const REQUESTS: usize = 1;

/// Makes calls over a connection, as a kubelet or a plugin does. Kubelets send the same authority since release 1.26. Dropping the
/// channel closes the connection.
///
/// # Errors
/// How the connection was lost.
pub async fn connect<Io>(io: Io) -> Result<Channel, String>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut io = Some(TokioIo::new(io));
    let once = service_fn(move |_| {
        let taken = io.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected));
        std::future::ready(taken)
    });
    let connected = Endpoint::from_static("http://localhost").connect_with_connector(once).await;
    connected.map_err(|error| error_chain(&error))
}

/// How the connection of a call was lost, if that is why it failed: only tonic's own errors have a
/// cause. Their own text contains the internals of the cause.
pub(crate) fn lost(status: &Status) -> Option<String> {
    status.source().map(error_chain)
}

trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

/// A byte stream that others can close.
pub struct ClosableIo {
    // The type of the connection is erased, so that a server is compiled once and not for each
    // type.
    io: Box<dyn ByteStream>,
    closed: BoxFuture<'static, ()>,
    silence: Option<(Duration, Pin<Box<Sleep>>)>,
    requests: Arc<Semaphore>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl ClosableIo {
    /// A stream that fails once `close` is cancelled.
    pub fn new<Io>(io: Io, close: &CancellationToken) -> Self
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let closed = Box::pin(close.clone().cancelled_owned());
        let requests = Arc::new(Semaphore::new(REQUESTS));
        ClosableIo { io: Box::new(io), closed, silence: None, requests, _permit: None }
    }

    /// The stream, which keeps `permit` and also fails if the peer sends nothing for this time.
    pub(crate) fn limited(self, permit: OwnedSemaphorePermit, silence: Duration) -> ClosableIo {
        let silence = Some((silence, Box::pin(sleep(silence))));
        ClosableIo { silence, _permit: Some(permit), ..self }
    }

    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.closed.as_mut().poll(cx).is_ready() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let silence = self.silence.as_mut();
        if silence.is_some_and(|(_, ends)| ends.as_mut().poll(cx).is_ready()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl Connected for ClosableIo {
    /// Limits the requests that are received at the same time.
    type ConnectInfo = Arc<Semaphore>;

    fn connect_info(&self) -> Arc<Semaphore> {
        Arc::clone(&self.requests)
    }
}

impl AsyncRead for ClosableIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if read.is_ready()
            && let Some((limit, ends)) = &mut self.silence
        {
            ends.as_mut().reset(Instant::now() + *limit);
        }
        self.check(cx)?;
        read
    }
}

impl AsyncWrite for ClosableIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
