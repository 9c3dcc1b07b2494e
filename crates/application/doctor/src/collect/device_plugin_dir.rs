//! The kubelet's device plugin directory and the socket in it.

use std::io;
use std::path::Path;
use std::time::Duration;

use command_line::Failure;
use device_plugin::{Transport as _, UnixSockets};
use process::event_loop;
use tokio::time::timeout;
use win32::directory_access::directory_writers;

use crate::facts::{DirectoryAccess, DirectoryFacts, KubeletSocket};

/// How long the kubelet may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Inspects the directory, and connects to the kubelet without sending anything.
pub(super) fn inspect(path: &Path) -> Result<DirectoryFacts, Failure> {
    let socket = event_loop::build()?.block_on(socket(&path.join(device_plugin::KUBELET_SOCKET)));
    Ok(DirectoryFacts { path: path.to_owned(), access: access(path), socket })
}

fn access(path: &Path) -> DirectoryAccess {
    if let Err(error) = std::fs::read_dir(path) {
        return DirectoryAccess::NotOpened(error);
    }
    // The directory may be a link to another drive; the access rights there count.
    match path.canonicalize().and_then(|path| directory_writers(&path)) {
        Ok(writers) => DirectoryAccess::Writers(writers),
        Err(error) => DirectoryAccess::RightsUnknown(error),
    }
}

async fn socket(path: &Path) -> KubeletSocket {
    if !device_plugin::unix_sockets::is_supported() {
        return KubeletSocket::NotSupported;
    }
    // On Windows a missing file refuses connections just as one without a listener does.
    if let Err(error) = std::fs::symlink_metadata(path)
        && error.kind() == io::ErrorKind::NotFound
    {
        return KubeletSocket::Missing;
    }
    match timeout(CONNECT_LIMIT, UnixSockets.connect(path)).await {
        Ok(Ok(_)) => KubeletSocket::Accepts,
        Ok(Err(error)) => KubeletSocket::Refused(error),
        Err(_) => KubeletSocket::NoAnswer(CONNECT_LIMIT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        #[cfg(unix)]
        let file = folder.path().join("file");
        #[cfg(unix)]
        std::fs::write(&file, "").unwrap();
        for (path, expected) in [
            (folder.path().join("missing"), Some(io::ErrorKind::NotFound)),
            #[cfg(unix)]
            (file, Some(io::ErrorKind::NotADirectory)),
            (folder.path().to_owned(), None),
        ] {
            let kind = match access(&path) {
                DirectoryAccess::NotOpened(error) => Some(error.kind()),
                DirectoryAccess::RightsUnknown(error) => panic!("{error}"),
                DirectoryAccess::Writers(_) => None,
            };
            assert_eq!(kind, expected, "{}", path.display());
        }
    }

    #[test]
    fn a_socket_accepts_until_its_listener_closes() {
        if device_plugin::unix_sockets::skips_test() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(device_plugin::KUBELET_SOCKET);
        let socket = || inspect(folder.path()).unwrap().socket;
        assert!(matches!(socket(), KubeletSocket::Missing));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(async { UnixSockets.bind(&path) }).unwrap();
        assert!(matches!(socket(), KubeletSocket::Accepts));
        drop(listener);
        // Another test may be starting a process, which holds the listener until its exec.
        let is_refused = || {
            std::thread::sleep(Duration::from_millis(20));
            matches!(socket(), KubeletSocket::Refused(_) | KubeletSocket::Missing)
        };
        assert!((0..5000).any(|_| is_refused()));
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, "").unwrap();
        assert!(matches!(socket(), KubeletSocket::Refused(_)), "a plain file");
    }
}
