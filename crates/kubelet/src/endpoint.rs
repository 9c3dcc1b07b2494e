//! One socket of ours: who may connect to it, and how it ends.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use crate::service::Service;
use crate::transport::{Identity, Listener, Transport};
use crate::wire::{self, Closer, Closing, ConnectionLimits, Panicked, serve_connection};

/// How many connections one socket holds at once. A kubelet has one; while the limit is
/// reached, further ones wait until an idle one was closed.
const CONNECTION_LIMIT: usize = 64;

/// How long to wait after a failed accept: it fails for want of file handles or memory,
/// and would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a closing endpoint waits for calls and connections to end.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// One bound socket.
pub(crate) struct Endpoint {
    pub(crate) path: PathBuf,
    identity: Identity,
    closing: Closer,
    kubelet_expected: Arc<AtomicBool>,
}

/// What an endpoint's service and listener need to know of it.
pub(crate) struct EndpointParts {
    pub(crate) closing: Closing,
    pub(crate) kubelet_expected: Arc<AtomicBool>,
}

impl Endpoint {
    /// Binds a socket.
    ///
    /// # Errors
    /// What the transport says.
    pub(crate) fn bind<T: Transport>(
        transport: &T,
        path: PathBuf,
    ) -> io::Result<(Self, T::Listener, EndpointParts)> {
        let listener = transport.bind(&path)?;
        let identity = transport.identity(&path)?.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "the socket vanished as it was made")
        })?;
        let (closing, closing_seen) = wire::closing();
        let kubelet_expected = Arc::new(AtomicBool::new(false));
        let parts = EndpointParts {
            closing: closing_seen,
            kubelet_expected: Arc::clone(&kubelet_expected),
        };
        Ok((Endpoint { path, identity, closing, kubelet_expected }, listener, parts))
    }

    /// Whether the socket's path still leads to the socket.
    pub(crate) fn is_in_place<T: Transport>(&self, transport: &T) -> bool {
        matches!(transport.identity(&self.path), Ok(Some(identity)) if identity == self.identity)
    }

    /// Whether the next stream is the kubelet's.
    pub(crate) fn expect_kubelet(&self, expected: bool) {
        self.kubelet_expected.store(expected, Ordering::Relaxed);
    }

    /// Ends streams, then calls, then connections, and takes the socket's name away.
    pub(crate) fn close<T: Transport>(&self, transport: &T) {
        self.closing.close();
        if self.is_in_place(transport)
            && let Err(error) = transport.remove(&self.path)
        {
            tracing::debug!(socket = %self.path.display(), %error, "own socket not removed");
        }
    }

    pub(crate) fn file_name(&self) -> String {
        file_name(&self.path)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Accepts and serves connections until `closing` is asked for and they have ended.
///
/// # Errors
/// A task panicked.
pub(crate) async fn serve<L>(
    mut listener: L,
    service: Service,
    mut closing: Closing,
    resource: String,
) -> Result<(), Panicked>
where
    L: Listener,
    L::Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let task = format!("a connection to {resource}");
    let shared = closing.clone();
    let mut connections = JoinSet::new();
    loop {
        let room = connections.len() < CONNECTION_LIMIT;
        tokio::select! {
            biased;
            () = closing.asked() => break,
            Some(ended) = connections.join_next() => outcome(ended, &task)?,
            accepted = listener.accept(), if room => match accepted {
                Ok(io) => {
                    let (service, task) = (service.clone(), task.clone());
                    let closing = shared.clone();
                    connections.spawn(async move {
                        let limits = ConnectionLimits::default();
                        serve_connection(io, service, closing, limits, &task).await
                    });
                }
                Err(error) => {
                    tracing::warn!(resource, %error, "connection not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let drained = timeout(DRAIN_LIMIT, async {
        while let Some(ended) = connections.join_next().await {
            outcome(ended, &task)?;
        }
        Ok(())
    });
    if let Ok(result) = drained.await {
        return result;
    }
    tracing::debug!(resource, connections = connections.len(), "connections cut off");
    Ok(())
}

/// What a connection's end means. It is only aborted with everything else.
fn outcome(ended: Result<Result<(), Panicked>, JoinError>, task: &str) -> Result<(), Panicked> {
    match ended {
        Ok(result) => result,
        Err(error) if error.is_panic() => Err(Panicked::new(task.to_owned(), &*error.into_panic())),
        Err(_aborted) => Ok(()),
    }
}
