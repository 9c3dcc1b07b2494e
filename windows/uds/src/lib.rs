//! `AF_UNIX` for tokio, the same on Unix and Windows.
//!
//! In comes a path; out come a [`UnixListener`] and [`UnixStream`]s that read
//! and write like any other tokio stream.
//!
//! # Who may connect
//!
//! A socket is made for the user that made it, which for a device plugin is the
//! kubelet's own (root, or `LocalSystem`). On Unix its mode is 0600, and nobody
//! can connect before the mode is set, because the socket listens only then. On
//! Windows a socket has no mode: a connecting process needs write access to the
//! socket's file, so the access control list of the directory decides.
//!
//! # What is proven where
//!
//! On Unix this is tokio's own `AF_UNIX`. On Windows tokio and the standard library have
//! none, and `sys/windows.rs` registers a socket of `socket2` with tokio as if
//! it were TCP: the poll that tokio uses there (AFD) is not bound to TCP, and was seen
//! to serve `AF_UNIX` (tokio-rs/mio, issue 1609 and pull requests 1610 and 1955).
//! That code takes the address family from the address it is given, and its own
//! tests run it over IPv4 under Wine: bind, listen, accept by readiness, connect,
//! refused connections, reading and writing in both directions, half-close. Wine
//! has no `AF_UNIX`, so these steps wait for a real Windows: `socket(AF_UNIX)`
//! itself, the bind to a path, the errors of a path that exists or is missing, and
//! that AFD reports such sockets readable and writable as it does TCP ones.

#[cfg_attr(unix, path = "sys/unix.rs")]
#[cfg_attr(windows, path = "sys/windows.rs")]
mod sys;

use std::io::{self, IoSlice};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest path of a socket, in bytes of UTF-8 or of the Unix path: what
/// `sun_path` holds less the closing NUL, 108 − 1 on Linux and Windows
/// (`unix(7)`; `afunix.h`).
pub const MAX_PATH_BYTES: usize = 107;

/// Whether this host has `AF_UNIX` sockets at all: every Unix has, Windows from
/// version 1803 on, Wine 10 has not.
#[must_use]
pub fn is_supported() -> bool {
    sys::is_supported()
}

/// A socket in the file system that accepts connections.
///
/// Dropping it closes the socket and leaves the file: whoever chose the name
/// also decides when to remove it.
#[derive(Debug)]
pub struct UnixListener(sys::Listener);

impl UnixListener {
    /// Makes a socket at `path` that only the same user can connect to, and listens.
    ///
    /// # Errors
    /// `AddrInUse` where `path` exists, `InvalidInput` where it is empty or longer
    /// than [`MAX_PATH_BYTES`], `Unsupported` where the host has no `AF_UNIX`, and
    /// what the system says otherwise.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = checked(path.as_ref())?;
        sys::bind(path).map(Self)
    }

    /// Waits for the next connection. Cancel safe: a connection is either
    /// returned or stays queued.
    ///
    /// # Errors
    /// What the system says; the listener stays usable.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        sys::accept(&self.0).await.map(UnixStream)
    }
}

/// A connection between two processes of this host.
#[derive(Debug)]
pub struct UnixStream(sys::Stream);

impl UnixStream {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// `NotFound` or `ConnectionRefused` where nobody listens (Windows says
    /// `ConnectionRefused` for both), `InvalidInput` where the path is empty or longer than
    /// [`MAX_PATH_BYTES`], `Unsupported` where the host has no `AF_UNIX`, and what
    /// the system says otherwise.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = checked(path.as_ref())?;
        sys::connect(path).await.map(Self)
    }
}

impl AsyncRead for UnixStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for UnixStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Refuses what the system would refuse with less of a reason, or (an empty path
/// on Linux) take for something else.
fn checked(path: &Path) -> io::Result<&Path> {
    let length = path.as_os_str().len();
    let fault = if length == 0 {
        "socket path is empty".to_owned()
    } else if length > MAX_PATH_BYTES {
        format!(
            "socket path `{}` is {length} bytes long; the limit is {MAX_PATH_BYTES}",
            path.display()
        )
    } else {
        return Ok(path);
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, fault))
}
