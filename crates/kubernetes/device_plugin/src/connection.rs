//! A connection to a socket: the calls of a client, and closing it.

use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::text::error_chain;

/// `:authority` of the kubelet's client since 1.26.
const AUTHORITY: &str = "http://localhost";

/// Makes calls over a connection, as a kubelet or a plugin does. Dropping the channel closes the
/// connection.
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
    let connected = Endpoint::from_static(AUTHORITY).connect_with_connector(once).await;
    connected.map_err(|error| error_chain(&error))
}

/// How the connection of a call was lost, or `None` if the peer answered with this status. Only
/// errors of tonic itself have a source. The source is returned, because the text of such an error
/// contains internals of the library.
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
    _permit: Option<OwnedSemaphorePermit>,
}

impl ClosableIo {
    /// A stream that fails once `close` is cancelled.
    pub fn new<Io>(io: Io, close: &CancellationToken) -> Self
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let closed = Box::pin(close.clone().cancelled_owned());
        ClosableIo { io: Box::new(io), closed, _permit: None }
    }

    /// The stream, which keeps `permit` until it is dropped.
    pub(crate) fn counted(self, permit: OwnedSemaphorePermit) -> ClosableIo {
        ClosableIo { _permit: Some(permit), ..self }
    }

    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.closed.as_mut().poll(cx).is_ready() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl Connected for ClosableIo {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for ClosableIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.io).poll_read(cx, buf)
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
