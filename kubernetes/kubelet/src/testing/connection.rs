//! Connections between the kubelet and plugins.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Error};
use tower::service_fn;

/// A connection to a plugin. Dropping it closes the connection.
pub(crate) struct Connection {
    pub(crate) socket: PathBuf,
    closer: Option<DropGuard>,
}

impl Connection {
    /// Creates a connection that is not established yet.
    pub(crate) fn new(socket: PathBuf) -> Self {
        Connection { socket, closer: None }
    }

    pub(crate) fn is_established(&self) -> bool {
        self.closer.is_some()
    }

    /// Records that the connection is established, and how to close it.
    pub(crate) fn set_established(&mut self, closer: DropGuard) {
        self.closer = Some(closer);
    }
}

/// Makes calls over a connection until `close` is cancelled. Cancels `lost` when it has ended.
pub(crate) async fn client<Io>(
    io: Io,
    close: &CancellationToken,
    lost: &CancellationToken,
) -> Result<Channel, Error>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut io = Some(TokioIo::new(ClosableIo::new(io, close, lost)));
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
    client(io, &CancellationToken::new(), &CancellationToken::new()).await
}

/// A byte stream that others can close, and that reports its end.
pub struct ClosableIo<Io> {
    io: Io,
    closed: BoxFuture<'static, ()>,
    _ended: DropGuard,
}

impl<Io> ClosableIo<Io> {
    /// A stream that fails once `close` is cancelled, and cancels `ended` when it is dropped.
    pub fn new(io: Io, close: &CancellationToken, ended: &CancellationToken) -> Self {
        let closed = Box::pin(close.clone().cancelled_owned());
        ClosableIo { io, closed, _ended: ended.clone().drop_guard() }
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
