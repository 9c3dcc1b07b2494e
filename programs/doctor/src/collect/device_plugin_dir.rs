//! The kubelet's device plugin directory and the socket in it.

use std::io;
use std::path::Path;
use std::time::Duration;

use cli::{Failure, error_chain};
use tokio::time::timeout;
use win32::directory_access::Writer;

use crate::facts::{Directory, DirectoryState, SocketState};

/// How long the kubelet may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Inspects the directory, and connects to the kubelet without sending anything.
pub(super) fn inspect(path: &Path) -> Result<Directory, Failure> {
    let state = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => DirectoryState::Present,
        Ok(_) => DirectoryState::Unusable("not a directory".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => DirectoryState::Missing,
        Err(error) => DirectoryState::Unusable(error_chain(&error)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::runtime(anyhow::Error::new(error).context("cannot start the event loop"))
    })?;
    let socket = runtime.block_on(connect(&path.join(kubelet::KUBELET_SOCKET)));
    let writers = match state {
        DirectoryState::Present => writers(path),
        DirectoryState::Missing | DirectoryState::Unusable(_) => None,
    };
    Ok(Directory { path: path.display().to_string(), state, writers, socket })
}

#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
fn writers(path: &Path) -> Option<Result<Vec<Writer>, String>> {
    let writers = win32::directory_access::directory_writers(path);
    Some(writers.map_err(|error| error_chain(&error)))
}

/// Directories of other systems are for tests and inventories.
#[cfg(not(windows))]
fn writers(_: &Path) -> Option<Result<Vec<Writer>, String>> {
    None
}

async fn connect(socket: &Path) -> SocketState {
    if !uds::is_supported() {
        return SocketState::Unsupported;
    }
    // On Windows a missing file refuses connections just as one without a listener does.
    if let Err(error) = std::fs::symlink_metadata(socket)
        && error.kind() == io::ErrorKind::NotFound
    {
        return SocketState::Missing;
    }
    match timeout(CONNECT_LIMIT, uds::connect(socket)).await {
        Ok(Ok(_connected)) => SocketState::Accepting,
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            SocketState::AccessDenied(error_chain(&error))
        }
        Ok(Err(error)) => SocketState::NotResponding(error_chain(&error)),
        Err(_) => {
            SocketState::NotResponding(format!("no answer within {} s", CONNECT_LIMIT.as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspected(path: &Path) -> (DirectoryState, SocketState) {
        let directory = inspect(path).unwrap();
        assert_eq!(directory.path, path.display().to_string());
        (directory.state, directory.socket)
    }

    #[test]
    fn a_missing_directory_or_socket_is_missing() {
        if uds::skips_test() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (state, socket) = inspected(&folder.path().join("missing"));
        assert_eq!((state, socket), (DirectoryState::Missing, SocketState::Missing));
        assert_eq!(inspected(folder.path()), (DirectoryState::Present, SocketState::Missing));
    }

    #[cfg(windows)]
    #[test]
    fn the_access_rights_of_a_directory_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let writers = |path: &Path| inspect(path).unwrap().writers;
        assert!(matches!(writers(folder.path()), Some(Ok(_))), "{:?}", writers(folder.path()));
        assert_eq!(writers(&folder.path().join("missing")), None);
    }

    #[test]
    fn a_plain_file_is_neither_a_directory_nor_a_kubelet() {
        if uds::skips_test() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubelet.sock");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(inspected(&file).0, DirectoryState::Unusable(_)));
        assert!(matches!(inspected(folder.path()).1, SocketState::NotResponding(_)));
    }

    #[test]
    fn a_socket_accepts_until_its_listener_closes() {
        if uds::skips_test() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubelet.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(async { uds::UnixListener::bind(&path) }).unwrap();
        assert_eq!(inspected(folder.path()), (DirectoryState::Present, SocketState::Accepting));
        drop(listener);
        // Another test may be starting a process, which holds the listener until its exec.
        let closed = || matches!(inspected(folder.path()).1, SocketState::NotResponding(_));
        let pause = std::time::Duration::from_millis(20);
        assert!((0..5000).any(|_| closed() || (std::thread::sleep(pause), false).1));
    }
}
