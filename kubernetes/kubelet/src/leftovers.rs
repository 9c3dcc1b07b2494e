//! Names of sockets, and the sockets that earlier processes left behind.
//!
//! A name is `<prefix>-<unix milliseconds>.sock`. A process that is killed leaves its
//! socket behind; nobody listens on it, and nobody else removes it until the kubelet
//! starts again.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::timeout;

use crate::transport::Transport;

const EXTENSION: &str = ".sock";

/// How long a leftover may take to refuse a connection. One that takes longer is left.
const PROBE_LIMIT: Duration = Duration::from_millis(200);

/// Gives names that no two sockets of this process share.
#[derive(Debug, Default)]
pub(crate) struct SocketNames {
    last: u64,
}

impl SocketNames {
    /// The next name for `prefix`: the current time, or one more than the last name's.
    pub(crate) fn next(&mut self, prefix: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now = u64::try_from(now).unwrap_or_default();
        self.last = now.max(self.last + 1);
        format!("{prefix}-{}{EXTENSION}", self.last)
    }
}

/// Whether `name` is one that [`SocketNames`] gives for `prefix`.
pub(crate) fn is_named_for(prefix: &str, name: &str) -> bool {
    name.strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|rest| rest.strip_suffix(EXTENSION))
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Removes sockets with these prefixes that refuse connections, except `ours`.
///
/// A socket that accepts one belongs to a process that lives, such as the one that a
/// rolling update is about to end.
pub(crate) async fn clear<T: Transport>(
    transport: T,
    directory: PathBuf,
    prefixes: Vec<String>,
    ours: Vec<PathBuf>,
) {
    let Ok(paths) = transport.list(&directory) else { return };
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if ours.contains(&path) || !prefixes.iter().any(|prefix| is_named_for(prefix, &name)) {
            continue;
        }
        if refuses(&transport, &path).await && transport.remove(&path).is_ok() {
            tracing::info!(socket = %path.display(), "socket of an earlier process removed");
        }
    }
}

async fn refuses<T: Transport>(transport: &T, path: &Path) -> bool {
    match timeout(PROBE_LIMIT, transport.connect(path)).await {
        Ok(Err(error)) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        Ok(Ok(_)) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_recognised() {
        let mut names = SocketNames::default();
        let mut seen: Vec<String> = (0..1000).map(|_| names.next("wddm")).collect();
        assert!(seen.iter().all(|name| is_named_for("wddm", name)));
        assert!(seen.is_sorted());
        seen.dedup();
        assert_eq!(seen.len(), 1000);
    }

    #[test]
    fn other_names_are_not_ours() {
        for other in [
            "kubelet.sock",
            "wddm-.sock",
            "wddm-12a.sock",
            "wddm-12.sock.bak",
            "wddm12.sock",
            "xwddm-12.sock",
            "wddm-x-12.sock",
            "kubelet_internal_checkpoint",
        ] {
            assert!(!is_named_for("wddm", other), "{other}");
        }
    }
}
