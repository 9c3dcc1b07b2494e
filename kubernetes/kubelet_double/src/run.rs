//! Starts and runs a kubelet: cleans its directory, listens on its socket, accepts registrations
//! and runs all its tasks.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kubelet::http2::{self, CloseSignal, Closer, ConnectionLimits, serve_connection};
use kubelet::{KUBELET_SOCKET, Listener};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::host::Host;
use crate::manager::Manager;
use crate::options::{Cleanup, Options};
use crate::process::{Process, Shared, Task};
use crate::registration::Registrar;
use crate::v1beta1::registration_server::RegistrationServer;

/// The name of the file in which a kubelet saves its allocations.
const CHECKPOINT: &str = "kubelet_internal_checkpoint";

/// Starts a kubelet: creates and cleans its directory and listens on its socket. The returned
/// future serves the kubelet and owns all its tasks.
pub(crate) fn start<T: Host>(
    host: T,
    directory: PathBuf,
    options: Options,
    manager: Manager,
    shared: Shared,
) -> io::Result<(Arc<Process<T>>, Closer, impl Future<Output = ()> + Send + 'static)> {
    host.create_directory(&directory)?;
    clean_up(&host, &directory, options.cleanup)?;
    let listener = host.bind(&directory.join(KUBELET_SOCKET))?;
    let (process, new_tasks) = Process::new(host, directory, options, manager, shared);
    let process = Arc::new(process);
    let (closer, close_signal) = http2::close_signal();
    let serving = serve(Arc::clone(&process), listener, new_tasks, close_signal);
    Ok((process, closer, serving))
}

/// `CleanupPluginDirectory`, in the variants of the different releases.
fn clean_up<T: Host>(host: &T, directory: &Path, cleanup: Cleanup) -> io::Result<()> {
    for path in host.list(directory)? {
        let remove = match cleanup {
            Cleanup::Sockets => host.is_socket(&path),
            Cleanup::EverythingButCheckpoint => !path.ends_with(CHECKPOINT),
            Cleanup::OwnSocket => path.ends_with(KUBELET_SOCKET),
        };
        if remove {
            host.remove(&path)?;
        }
    }
    Ok(())
}

/// Accepts connections and runs all tasks until the close signal arrives or the future is dropped.
async fn serve<T: Host>(
    process: Arc<Process<T>>,
    mut listener: T::Listener,
    mut new_tasks: mpsc::UnboundedReceiver<Task>,
    mut close_signal: CloseSignal,
) {
    let mut tasks = JoinSet::new();
    let connections_close = close_signal.clone();
    loop {
        tokio::select! {
            biased;
            () = close_signal.requested() => return,
            Some(task) = new_tasks.recv() => {
                tasks.spawn(task);
            }
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
            Ok(io) = listener.accept() => {
                tasks.spawn(serve_plugin(Arc::clone(&process), io, connections_close.clone()));
            }
        }
    }
}

/// Serves the `Registration` service on the connection of a plugin.
async fn serve_plugin<T: Host>(process: Arc<Process<T>>, io: T::Stream, close_signal: CloseSignal) {
    let service = RegistrationServer::new(Registrar(process));
    let limits = ConnectionLimits::default();
    let served = serve_connection(io, service, close_signal, limits, "registration of a plugin");
    if let Err(panicked) = served.await {
        std::panic::resume_unwind(Box::new(panicked.to_string()));
    }
}
