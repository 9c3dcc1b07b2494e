//! One socket of ours: who may connect to it, and how it ends.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
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
    closer: Closer,
    kubelet_expected: Arc<AtomicBool>,
}

/// A socket that was just bound, and what its listener and service need.
pub(crate) struct Bound<L> {
    pub(crate) endpoint: Endpoint,
    pub(crate) listener: L,
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
    ) -> io::Result<Bound<T::Listener>> {
        let listener = transport.bind(&path)?;
        let identity = transport.identity(&path)?.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "the socket vanished as it was made")
        })?;
        let (closer, closing) = wire::closing();
        let kubelet_expected = Arc::new(AtomicBool::new(false));
        let endpoint =
            Endpoint { path, identity, closer, kubelet_expected: Arc::clone(&kubelet_expected) };
        Ok(Bound { endpoint, listener, closing, kubelet_expected })
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
        self.closer.close();
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
    L::Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut connections = Connections {
        running: JoinSet::new(),
        service,
        closing: closing.clone(),
        task: format!("a connection to {resource}"),
    };
    loop {
        let room = connections.running.len() < CONNECTION_LIMIT;
        tokio::select! {
            biased;
            () = closing.asked() => break,
            Some(ended) = connections.running.join_next() => connections.outcome(ended)?,
            accepted = listener.accept(), if room => match accepted {
                Ok(io) => connections.serve(io),
                Err(error) => {
                    tracing::warn!(resource, %error, "connection not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    if let Ok(drained) = timeout(DRAIN_LIMIT, connections.drain()).await {
        return drained;
    }
    tracing::debug!(resource, connections = connections.running.len(), "connections cut off");
    Ok(())
}

/// The connections to one endpoint. Dropping it ends them.
struct Connections {
    running: JoinSet<Result<(), Panicked>>,
    service: Service,
    closing: Closing,
    task: String,
}

impl Connections {
    fn serve<Io>(&mut self, io: Io)
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (service, closing) = (self.service.clone(), self.closing.clone());
        let task = self.task.clone();
        self.running.spawn(async move {
            serve_connection(io, service, closing, ConnectionLimits::default(), &task).await
        });
    }

    async fn drain(&mut self) -> Result<(), Panicked> {
        while let Some(ended) = self.running.join_next().await {
            self.outcome(ended)?;
        }
        Ok(())
    }

    /// What a connection's end means. It is only aborted with everything else.
    fn outcome(&self, ended: Result<Result<(), Panicked>, JoinError>) -> Result<(), Panicked> {
        match ended {
            Ok(result) => result,
            Err(error) if error.is_panic() => {
                Err(Panicked::new(self.task.clone(), &*error.into_panic()))
            }
            Err(_aborted) => Ok(()),
        }
    }
}
