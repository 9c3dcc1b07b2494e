//! Connections between the kubelet and plugins.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Error};
use tower::service_fn;

/// Makes calls over a connection until `close` is cancelled.
pub(crate) async fn client<Io>(io: Io, close: &CancellationToken) -> Result<Channel, Error>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut io = Some(TokioIo::new(ClosableIo::new(io, close)));
    let once = service_fn(move |_| {
        std::future::ready(io.take().ok_or(io::Error::from(io::ErrorKind::NotConnected)))
    });
    Endpoint::from_static("http://localhost").connect_with_connector(once).await
}

/// Makes calls over a connection to a plugin, as a kubelet does. Dropping the channel and its clones
/// closes the connection.
///
/// # Errors
/// The connection was lost.
pub async fn connect<Io>(io: Io) -> Result<Channel, Error>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    client(io, &CancellationToken::new()).await
}

/// A byte stream that others can close.
pub struct ClosableIo<Io> {
    io: Io,
    closed: BoxFuture<'static, ()>,
}

impl<Io> ClosableIo<Io> {
    /// A stream that fails once `close` is cancelled.
    pub fn new(io: Io, close: &CancellationToken) -> Self {
        ClosableIo { io, closed: Box::pin(close.clone().cancelled_owned()) }
    }

    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.closed.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<Io> Connected for ClosableIo<Io> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl<Io: AsyncRead + Unpin> AsyncRead for ClosableIo<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for ClosableIo<Io> {
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
