//! The file of one socket of the plugin: binds it, and removes it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use crate::transport::{Identity, Transport};

/// One bound socket.
pub(crate) struct Endpoint {
    pub(crate) path: PathBuf,
    identity: Identity,
    /// Ends the streams, then the calls, then the connections.
    pub(crate) close: CancellationToken,
    pub(crate) kubelet_expected: Arc<AtomicBool>,
}

impl Endpoint {
    /// Binds a socket. If an attempt fails and its file cannot be removed, `leftover` keeps the path,
    /// and the next attempt removes it first. So repeated attempts never leave more than one file.
    ///
    /// # Errors
    /// Any error of the transport.
    pub(crate) fn bind<T: Transport>(
        transport: &T,
        path: PathBuf,
        leftover: &mut Option<PathBuf>,
    ) -> io::Result<(Endpoint, T::Listener)> {
        remove_leftover(transport, leftover)?;
        let listener = transport.bind(&path)?;
        let identity = match identity(transport, &path) {
            Ok(identity) => identity,
            Err(error) => {
                drop(listener);
                *leftover = Some(path);
                // Ignored, because the original error is more useful.
                let _ = remove_leftover(transport, leftover);
                return Err(error);
            }
        };
        let (close, kubelet_expected) = (CancellationToken::new(), Arc::default());
        Ok((Endpoint { path, identity, close, kubelet_expected }, listener))
    }

    /// Whether the path of the socket still leads to this socket. A socket that cannot be inspected
    /// counts as in place: replacing it would end a stream that works.
    pub(crate) fn is_in_place<T: Transport>(&self, transport: &T) -> bool {
        match transport.identity(&self.path) {
            Ok(Some(found)) => self.identity.is_same_file(&found),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// From now on, the next stream is the kubelet's.
    pub(crate) fn expect_kubelet(&self) {
        self.kubelet_expected.store(true, Ordering::Relaxed);
    }

    /// From now on, the next stream is not the kubelet's.
    pub(crate) fn stop_expecting_kubelet(&self) {
        self.kubelet_expected.store(false, Ordering::Relaxed);
    }

    /// Ends the streams, then the calls, then the connections, and removes the socket's file.
    pub(crate) fn close<T: Transport>(&self, transport: &T) {
        self.close.cancel();
        self.remove_file(transport);
    }

    /// Removes the socket's file, unless it was removed already.
    pub(crate) fn remove_file<T: Transport>(&self, transport: &T) {
        if self.is_in_place(transport)
            && let Err(error) = transport.remove(&self.path)
        {
            tracing::debug!(socket = %self.path.display(), %error, "cannot remove plugin socket");
        }
    }

    pub(crate) fn file_name(&self) -> String {
        file_name(&self.path)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn identity<T: Transport>(transport: &T, path: &Path) -> io::Result<Identity> {
    let deleted = || io::Error::other("the socket was deleted right after it was bound");
    transport.identity(path)?.ok_or_else(deleted)
}

/// Removes the file that a failed attempt to bind a socket left behind.
///
/// # Errors
/// The file exists and cannot be removed. `leftover` keeps its path.
pub(crate) fn remove_leftover<T: Transport>(
    transport: &T,
    leftover: &mut Option<PathBuf>,
) -> io::Result<()> {
    let Some(path) = leftover.take() else { return Ok(()) };
    match transport.remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let path = leftover.insert(path).display();
            let text = format!("cannot remove `{path}`, which a failed attempt left: {error}");
            Err(io::Error::new(error.kind(), text))
        }
        _ => Ok(()),
    }
}
