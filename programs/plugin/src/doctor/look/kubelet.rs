//! The kubelet's device plugin directory and the socket in it.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::in_words;
use crate::doctor::observed::{Directory, DirectoryState, SocketState};

/// How long the kubelet may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Looks at the directory, and connects to the kubelet without saying anything.
pub(super) fn directory(runtime: &Runtime, path: &Path) -> Directory {
    let state = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => DirectoryState::Present,
        Ok(_) => DirectoryState::Unusable("it is no directory".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => DirectoryState::Missing,
        Err(error) => DirectoryState::Unusable(in_words(&error)),
    };
    let socket = runtime.block_on(socket(&path.join("kubelet.sock")));
    Directory { path: path.display().to_string(), state, socket }
}

async fn socket(path: &Path) -> SocketState {
    if !uds::is_supported() {
        return SocketState::Unsupported;
    }
    // On Windows a file that is not there refuses connections like one without a listener.
    if let Err(error) = std::fs::symlink_metadata(path)
        && error.kind() == io::ErrorKind::NotFound
    {
        return SocketState::Missing;
    }
    match timeout(CONNECT_LIMIT, uds::UnixStream::connect(path)).await {
        Ok(Ok(_connected)) => SocketState::Answers,
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            SocketState::Denied(in_words(&error))
        }
        Ok(Err(error)) => SocketState::Dead(in_words(&error)),
        Err(_) => SocketState::Dead(format!("no answer within {} s", CONNECT_LIMIT.as_secs())),
    }
}

// Wine has no AF_UNIX to ask with.
#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn looked(path: &Path) -> (DirectoryState, SocketState) {
        let looked = directory(&crate::serve::runtime().unwrap(), path);
        assert_eq!(looked.path, path.display().to_string());
        (looked.state, looked.socket)
    }

    #[test]
    fn what_is_not_there_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let (state, socket) = looked(&folder.path().join("gone"));
        assert_eq!((state, socket), (DirectoryState::Missing, SocketState::Missing));
        assert_eq!(looked(folder.path()), (DirectoryState::Present, SocketState::Missing));
    }

    #[test]
    fn a_file_is_no_directory_and_no_kubelet() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubelet.sock");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(looked(&file).0, DirectoryState::Unusable(_)));
        assert!(matches!(looked(folder.path()).1, SocketState::Dead(_)));
    }

    #[test]
    fn a_listener_answers_until_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubelet.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(looked(folder.path()), (DirectoryState::Present, SocketState::Answers));
        drop(listener);
        assert!(matches!(looked(folder.path()).1, SocketState::Dead(_)));
    }
}
