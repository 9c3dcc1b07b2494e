//! Removes stale sockets: sockets that earlier processes left behind.
//!
//! A process that is killed leaves its socket behind. No process listens on it, and nothing
//! else removes it until the kubelet starts again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;

use crate::socket_names;
use crate::transport::Transport;

/// How long a stale socket may take to refuse a connection. A socket that takes longer is kept.
const PROBE_LIMIT: Duration = Duration::from_millis(200);

/// Removes the sockets with these prefixes that refuse connections, except `own`.
///
/// A socket that accepts a connection belongs to a running process, such as the one that a
/// rolling update is about to stop.
pub(crate) async fn remove<T: Transport>(
    transport: T,
    directory: PathBuf,
    prefixes: Vec<String>,
    own: Vec<PathBuf>,
) {
    let Ok(paths) = transport.list(&directory) else { return };
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let named = prefixes.iter().any(|prefix| socket_names::has_prefix(prefix, &name));
        if own.contains(&path) || !named {
            continue;
        }
        if refuses_connections(&transport, &path).await && transport.remove(&path).is_ok() {
            tracing::info!(socket = %path.display(), "removed stale socket");
        }
    }
}

async fn refuses_connections<T: Transport>(transport: &T, path: &Path) -> bool {
    match timeout(PROBE_LIMIT, transport.connect(path)).await {
        Ok(Err(error)) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        Ok(Ok(_)) | Err(_) => false,
    }
}
