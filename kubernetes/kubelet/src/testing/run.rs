//! Starts and runs a kubelet: cleans its directory, listens on its socket, accepts registrations
//! and runs all its tasks.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use futures_util::stream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use super::connection::ClosableIo;
use crate::{KUBELET_SOCKET, Listener};

use super::host::Host;
use super::manager::Manager;
use super::options::{Cleanup, Options};
use super::process::{Process, Shared, Task};
use super::registration::Registrar;
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
) -> io::Result<(Arc<Process<T>>, CancellationToken, impl Future<Output = ()> + Send + 'static)> {
    host.create_directory(&directory)?;
    clean_up(&host, &directory, options.cleanup)?;
    let listener = host.bind(&directory.join(KUBELET_SOCKET))?;
    let (process, new_tasks) = Process::new(host, directory, options, manager, shared);
    let process = Arc::new(process);
    let close = CancellationToken::new();
    let serving = serve(Arc::clone(&process), listener, new_tasks, close.clone());
    Ok((process, close, serving))
}

/// `CleanupPluginDirectory`, in the variants of the different releases.
fn clean_up<T: Host>(host: &T, directory: &Path, cleanup: Cleanup) -> io::Result<()> {
    for path in host.list(directory)? {
        let remove = match cleanup {
            Cleanup::Sockets => host.is_socket(&path),
            Cleanup::EverythingButCheckpoint => {
                !path.ends_with(CHECKPOINT) && !host.is_directory(&path)
            }
            Cleanup::OwnSocket => path.ends_with(KUBELET_SOCKET),
        };
        if remove {
            host.remove(&path)?;
        }
    }
    Ok(())
}

/// Serves plugins and runs all tasks until `close` is cancelled or the future is dropped.
async fn serve<T: Host>(
    process: Arc<Process<T>>,
    listener: T::Listener,
    mut new_tasks: mpsc::UnboundedReceiver<Task>,
    close: CancellationToken,
) {
    let ended = CancellationToken::new();
    let _ended = ended.clone().drop_guard();
    let connections = stream::unfold(listener, |mut listener| {
        let ended = ended.clone();
        async move {
            let accepted = listener.accept().await;
            let closable = |io| ClosableIo::new(io, &ended, &CancellationToken::new());
            Some((accepted.map(closable), listener))
        }
    });
    let service = RegistrationServer::new(Registrar(process));
    let mut serving = pin!(Server::builder().serve_with_incoming(service, connections));
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = close.cancelled() => return,
            Some(task) = new_tasks.recv() => {
                tasks.spawn(task);
            }
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
            _never = &mut serving => return,
        }
    }
}
