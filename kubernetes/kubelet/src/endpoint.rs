//! One socket of the plugin: binds it, accepts and serves its connections, and closes it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use crate::connection_slots::{Slot, SocketSlots};
use crate::http2::{self, CloseSignal, Closer, ConnectionLimits, Panicked, serve_connection};
use crate::service::Service;
use crate::transport::{Identity, Listener, Transport};

/// How long to wait after a failed accept. It fails when file handles or memory run out, and would
/// fail again immediately.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long an endpoint that was replaced waits for calls and connections to end. A shutdown has its
/// own limit.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// One bound socket.
pub(crate) struct Endpoint {
    pub(crate) path: PathBuf,
    identity: Identity,
    closer: Closer,
    kubelet_expected: Arc<AtomicBool>,
}

/// A new socket, and what its listener and service need.
pub(crate) struct Bound<L> {
    pub(crate) endpoint: Endpoint,
    pub(crate) listener: L,
    pub(crate) close_signal: CloseSignal,
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
    ) -> io::Result<Bound<T::Listener>> {
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
        let (closer, close_signal) = http2::close_signal();
        let kubelet_expected = Arc::new(AtomicBool::new(false));
        let endpoint =
            Endpoint { path, identity, closer, kubelet_expected: Arc::clone(&kubelet_expected) };
        Ok(Bound { endpoint, listener, close_signal, kubelet_expected })
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
        self.closer.close();
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

/// Accepts and serves connections until the close signal arrives and all connections have ended.
///
/// # Errors
/// A task panicked.
pub(crate) async fn serve<L>(
    mut listener: L,
    service: Service,
    slots: SocketSlots,
    mut close_signal: CloseSignal,
    resource: String,
) -> Result<(), Panicked>
where
    L: Listener,
    L::Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut connections = Connections {
        running: JoinSet::new(),
        service,
        close_signal: close_signal.clone(),
        task: format!("connection to {resource}"),
    };
    loop {
        let next = async {
            let slot = slots.take().await;
            (listener.accept().await, slot)
        };
        tokio::select! {
            biased;
            () = close_signal.requested() => break,
            Some(ended) = connections.running.join_next() => connections.outcome(ended)?,
            accepted = next => match accepted {
                (Ok(io), slot) => connections.serve(io, slot),
                (Err(error), _) => {
                    tracing::warn!(resource, %error, "cannot accept connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    if let Ok(drained) = timeout(DRAIN_LIMIT, connections.drain()).await {
        return drained;
    }
    let open = connections.running.len();
    tracing::debug!(resource, connections = open, "drain timed out; closed remaining connections");
    Ok(())
}

/// The connections to one endpoint. Dropping this closes them.
struct Connections {
    running: JoinSet<Result<(), Panicked>>,
    service: Service,
    close_signal: CloseSignal,
    task: String,
}

impl Connections {
    fn serve<Io>(&mut self, io: Io, slot: Slot)
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (service, close_signal) = (self.service.for_connection(), self.close_signal.clone());
        let task = self.task.clone();
        self.running.spawn(async move {
            let _occupied = slot;
            serve_connection(io, service, close_signal, ConnectionLimits::default(), &task).await
        });
    }

    async fn drain(&mut self) -> Result<(), Panicked> {
        while let Some(ended) = self.running.join_next().await {
            self.outcome(ended)?;
        }
        Ok(())
    }

    /// The result of a connection's task. A task is aborted only when all of them are.
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
