//! The Unix side: tokio's own sockets.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::net::{UnixListener, UnixSocket, UnixStream};

pub(crate) type Listener = UnixListener;
pub(crate) type Stream = UnixStream;

/// Connections that wait for `accept`; the kubelet opens a handful.
const BACKLOG: u32 = 128;

/// Read and write for the owner, nothing for anyone else.
const OWNER_ONLY: u32 = 0o600;

pub(crate) fn is_supported() -> bool {
    true
}

/// Binds, narrows the mode, then listens: before `listen` every connection is
/// refused, so the mode that the umask gave the socket never matters, and the
/// umask, which belongs to the whole process, stays as it is.
pub(crate) fn bind(path: &Path) -> io::Result<Listener> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(OWNER_ONLY))
        .and_then(|()| socket.listen(BACKLOG))
        .inspect_err(|_| {
            // The error that led here says more than one from removing the file.
            let _ = fs::remove_file(path);
        })
}

pub(crate) async fn accept(listener: &Listener) -> io::Result<Stream> {
    listener.accept().await.map(|(stream, _)| stream)
}

pub(crate) async fn connect(path: &Path) -> io::Result<Stream> {
    UnixStream::connect(path).await
}
