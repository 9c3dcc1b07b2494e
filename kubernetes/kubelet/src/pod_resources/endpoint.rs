//! Where the kubelet serves the `PodResources` API.

use std::io;
use std::path::{Path, PathBuf};

/// A named pipe of this host. A path to another host would make Windows log on there.
const LOCAL_PIPE: &str = r"\\.\pipe\";

/// The endpoint of kubelets on Windows, whatever their `--root-dir` is
/// (`pkg/kubelet/util/util_windows.go`).
const WINDOWS: &str = r"\\.\pipe\kubelet-pod-resources";

/// The endpoint of kubelets on Linux with the default `--root-dir`.
const UNIX: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

/// The socket or, on Windows, the named pipe of the kubelet. The default is the one of a kubelet
/// with default options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint(PathBuf);

/// A path that cannot be a kubelet's endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected {EXPECTED}")]
pub struct InvalidEndpoint;

const EXPECTED: &str = if cfg!(windows) {
    r"a named pipe of this host, such as `\\.\pipe\kubelet-pod-resources`"
} else {
    "the absolute path of a socket, such as `/var/lib/kubelet/pod-resources/kubelet.sock`"
};

impl Default for Endpoint {
    fn default() -> Self {
        Endpoint(PathBuf::from(if cfg!(windows) { WINDOWS } else { UNIX }))
    }
}

impl Endpoint {
    /// The endpoint at a path: of a socket, or on Windows of a named pipe, `\\.\pipe\NAME`.
    ///
    /// # Errors
    /// The path is not absolute, or is not a named pipe of this host.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, InvalidEndpoint> {
        let path = path.into();
        let is_valid = if cfg!(windows) { is_local_pipe(&path) } else { path.is_absolute() };
        is_valid.then_some(Endpoint(path)).ok_or(InvalidEndpoint)
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The endpoint of the same kubelet's Pods API (`util.LocalEndpoint` of Kubernetes). `None` if
    /// this endpoint does not have the name that kubelets give it.
    pub(super) fn pods_api(&self) -> Option<Endpoint> {
        if cfg!(windows) {
            let name = self.0.to_str()?.strip_suffix("pod-resources")?;
            return Some(Endpoint(PathBuf::from(format!("{name}pods-api"))));
        }
        let folder = self.0.parent().filter(|folder| folder.ends_with("pod-resources"))?;
        Some(Endpoint(folder.with_file_name("pods-api").join("pods-api.sock")))
    }
}

/// Whether a path is a named pipe of this host. Windows ignores case.
fn is_local_pipe(path: &Path) -> bool {
    let prefix = path.to_str().and_then(|text| text.split_at_checked(LOCAL_PIPE.len()));
    prefix.is_some_and(|(prefix, name)| prefix.eq_ignore_ascii_case(LOCAL_PIPE) && !name.is_empty())
}

#[cfg(unix)]
pub(super) use uds::UnixStream as Stream;

#[cfg(windows)]
pub(super) use tokio::net::windows::named_pipe::NamedPipeClient as Stream;

/// Connects to the kubelet.
#[cfg(unix)]
pub(super) async fn connect(endpoint: &Endpoint) -> io::Result<Stream> {
    uds::connect(endpoint.path()).await
}

/// Connects to the kubelet. Waits while another client is connecting; the caller limits the time.
/// Whoever created the pipe can learn who this client is and cannot act on its behalf, because
/// that is tokio's default (`SECURITY_IDENTIFICATION`).
#[cfg(windows)]
pub(super) async fn connect(endpoint: &Endpoint) -> io::Result<Stream> {
    use std::time::Duration;
    use tokio::net::windows::named_pipe::ClientOptions;

    /// `ERROR_PIPE_BUSY`: the server has not created its next instance yet.
    const PIPE_BUSY: i32 = 231;
    const PAUSE: Duration = Duration::from_millis(20);
    loop {
        match ClientOptions::new().open(endpoint.path()) {
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
    fn the_default_is_valid() {
        let default = Endpoint::default();
        assert_eq!(Endpoint::new(default.path()), Ok(default));
    }

    #[test]
    fn the_pods_api_is_beside_the_pod_resources() {
        let (path, other) = if cfg!(windows) {
            (r"\\.\pipe\kubelet-pods-api", r"\\.\pipe\other")
        } else {
            ("/var/lib/kubelet/pods-api/pods-api.sock", "/run/kubelet.sock")
        };
        assert_eq!(Endpoint::default().pods_api(), Some(Endpoint::new(path).unwrap()));
        assert_eq!(Endpoint::new(other).unwrap().pods_api(), None);
    }

    #[test]
    fn only_pipes_of_this_host_are_pipes() {
        for path in [WINDOWS, r"\\.\PIPE\x"] {
            assert!(is_local_pipe(Path::new(path)), "{path}");
        }
        for path in
            [r"\\server\pipe\x", r"\\.\pipe\", r"\\.\pipé\x", r"C:\pipe\x", "", "/run/x.sock"]
        {
            assert!(!is_local_pipe(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn other_paths_are_refused_with_an_example() {
        for path in ["kubelet.sock", ""] {
            let error = Endpoint::new(path).unwrap_err().to_string();
            assert!(error.contains(&*Endpoint::default().path().to_string_lossy()), "{error}");
        }
    }
}
