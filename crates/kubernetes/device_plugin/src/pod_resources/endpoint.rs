//! Where the kubelet serves the `PodResources` API: a socket or, on Windows, a named pipe.

use std::io;
use std::path::{Path, PathBuf};
#[cfg(windows)]
use std::time::Duration;

#[cfg(windows)]
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};

#[cfg(unix)]
use crate::transport::Transport as _;
#[cfg(unix)]
use crate::unix_sockets::{UnixSockets, UnixStream};

/// The endpoint of kubelets on Windows, whatever their `--root-dir` is
/// (`pkg/kubelet/util/util_windows.go`).
const WINDOWS: &str = r"\\.\pipe\kubelet-pod-resources";

/// The endpoint of kubelets on Linux with the default `--root-dir`.
const UNIX: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

/// The endpoint of a kubelet with default options.
#[must_use]
pub fn default_endpoint() -> PathBuf {
    PathBuf::from(if cfg!(windows) { WINDOWS } else { UNIX })
}

/// The endpoint of the same kubelet's Pods API (`util.LocalEndpoint` of Kubernetes). `None` if
/// `endpoint` does not have the name that kubelets give it.
pub(super) fn pods_api(endpoint: &Path) -> Option<PathBuf> {
    if cfg!(windows) {
        let name = endpoint.to_str()?.strip_suffix("pod-resources")?;
        return Some(PathBuf::from(format!("{name}pods-api")));
    }
    let folder = endpoint.parent().filter(|folder| folder.ends_with("pod-resources"))?;
    Some(folder.with_file_name("pods-api").join("pods-api.sock"))
}

/// Connects to the kubelet.
#[cfg(unix)]
pub(super) async fn connect(endpoint: &Path) -> io::Result<UnixStream> {
    UnixSockets.connect(endpoint).await
}

/// Connects to the kubelet. Waits while another client is connecting; the caller limits the time.
/// Whoever created the pipe can learn who this client is and cannot act on its behalf, because
/// that is tokio's default (`SECURITY_IDENTIFICATION`).
#[cfg(windows)]
pub(super) async fn connect(endpoint: &Path) -> io::Result<NamedPipeClient> {
    /// `ERROR_PIPE_BUSY`: the server has not created its next instance yet.
    const PIPE_BUSY: i32 = 231;
    const PAUSE: Duration = Duration::from_millis(20);
    loop {
        match ClientOptions::new().open(endpoint) {
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) => {
                tokio::time::sleep(PAUSE).await;
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pods_api_is_beside_the_pod_resources() {
        let (path, other) = if cfg!(windows) {
            (r"\\.\pipe\kubelet-pods-api", r"\\.\pipe\other")
        } else {
            ("/var/lib/kubelet/pods-api/pods-api.sock", "/run/kubelet.sock")
        };
        assert_eq!(pods_api(&default_endpoint()).as_deref(), Some(Path::new(path)));
        assert_eq!(pods_api(Path::new(other)), None);
    }
}
