//! Tests of the public API with real sockets. They are skipped on hosts without `AF_UNIX`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use device_plugin::unix_sockets::{self, MAX_PATH_BYTES};
use device_plugin::{Identity, Listener as _, Transport as _, UnixSockets};

/// A folder with a short name. `TMPDIR` may be too long for a socket path.
fn directory() -> tempfile::TempDir {
    let parent = if cfg!(unix) { PathBuf::from("/tmp") } else { std::env::temp_dir() };
    tempfile::Builder::new()
        .prefix("sockets")
        .tempdir_in(parent)
        .expect("the folder can be written")
}

#[tokio::test]
async fn transfers_bytes_in_both_directions_and_half_close_ends_one() {
    if unix_sockets::skips_test() {
        return;
    }
    let directory = directory();
    let path = directory.path().join("echo.sock");
    let mut listener = UnixSockets.bind(&path).unwrap();
    let server = async {
        let mut stream = listener.accept().await.unwrap();
        let mut request = Vec::new();
        stream.read_to_end(&mut request).await.unwrap();
        stream.write_all(&request).await.unwrap();
    };
    let client = async {
        let sent = vec![7; 300_000];
        let mut stream = UnixSockets.connect(&path).await.unwrap();
        stream.write_all(&sent).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, sent);
    };
    tokio::join!(server, client);
}

#[tokio::test]
async fn serves_many_connections_at_once() {
    if unix_sockets::skips_test() {
        return;
    }
    let directory = directory();
    let path = directory.path().join("many.sock");
    let mut listener = UnixSockets.bind(&path).unwrap();
    let server = tokio::spawn(async move {
        let mut streams = Vec::new();
        for _ in 0..200 {
            streams.push(listener.accept().await.unwrap());
        }
        for stream in &mut streams {
            let byte = stream.read_u8().await.unwrap();
            stream.write_u8(byte).await.unwrap();
        }
    });
    let mut clients = Vec::new();
    for n in 0..200u8 {
        let mut stream = UnixSockets.connect(&path).await.unwrap();
        stream.write_u8(n).await.unwrap();
        clients.push((n, stream));
    }
    for (n, mut stream) in clients {
        assert_eq!(stream.read_u8().await.unwrap(), n);
    }
    server.await.unwrap();
}

/// The test of the code that sets the access control list on Windows reads it back.
#[tokio::test]
async fn only_the_owner_may_connect() {
    if unix_sockets::skips_test() {
        return;
    }
    let directory = directory();
    let path = directory.path().join("mode.sock");
    let listener = UnixSockets.bind(&path).unwrap();
    listener.restricted().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn accepts_the_longest_path_and_rejects_a_longer_one() {
    if unix_sockets::skips_test() {
        return;
    }
    let directory = directory();
    let room = MAX_PATH_BYTES - directory.path().as_os_str().len() - 1;
    let longest = directory.path().join("s".repeat(room));
    let _listener = UnixSockets.bind(&longest).unwrap();
    UnixSockets.connect(&longest).await.unwrap();

    let longer = directory.path().join("s".repeat(room + 1));
    let refused =
        [UnixSockets.bind(&longer).unwrap_err(), UnixSockets.connect(&longer).await.unwrap_err()];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(longer.to_str().unwrap()), "{text}");
        assert!(text.contains("108 bytes long; the limit is 107"), "{text}");
    }
}

#[tokio::test]
async fn does_not_replace_an_existing_file() {
    if unix_sockets::skips_test() {
        return;
    }
    let directory = directory();
    let path = directory.path().join("taken");
    std::fs::write(&path, "mine").unwrap();
    assert_eq!(UnixSockets.bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[tokio::test]
async fn distinguishes_a_missing_from_a_stale_socket() {
    if unix_sockets::skips_test() {
        return;
    }
    let directory = directory();
    let path = directory.path().join("stale.sock");
    let error = UnixSockets.connect(&path).await.unwrap_err();
    // Windows returns the same error for a missing and for a stale socket.
    let kinds: &[ErrorKind] = if cfg!(windows) {
        &[ErrorKind::NotFound, ErrorKind::ConnectionRefused]
    } else {
        &[ErrorKind::NotFound]
    };
    assert!(kinds.contains(&error.kind()), "{error}");

    drop(UnixSockets.bind(&path).unwrap());
    let error = UnixSockets.connect(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    if unix_sockets::skips_test() {
        return;
    }
    let directory = directory().path().join("missing");
    let error = UnixSockets.bind(&directory.join("a.sock")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), format!("directory `{}` does not exist", directory.display()));
}

fn identity(path: &Path) -> Identity {
    UnixSockets.identity(path).expect("the file can be inspected").expect("the socket exists")
}

#[tokio::test]
async fn the_identity_of_a_socket_lasts_until_another_one_replaces_it() {
    if unix_sockets::skips_test() {
        return;
    }
    let directory = directory();
    let path = directory.path().join("kubelet.sock");
    assert_eq!(UnixSockets.identity(&path).unwrap(), None);
    let mut listener = UnixSockets.bind(&path).unwrap();
    let first = identity(&path);
    for _ in 0..3 {
        let (accepted, connected) = tokio::join!(listener.accept(), UnixSockets.connect(&path));
        let mut server = accepted.unwrap();
        let mut client = connected.unwrap();
        client.write_u8(1).await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), 1);
        assert!(identity(&path).is_same_file(&first), "after a connection");
    }
    drop(listener);
    assert!(identity(&path).is_same_file(&first), "after the listener was closed");
    // The first file stays, so the file system cannot use its number again.
    std::fs::rename(&path, directory.path().join("old.sock")).unwrap();
    assert_eq!(UnixSockets.identity(&path).unwrap(), None);
    let _listener = UnixSockets.bind(&path).unwrap();
    assert!(!identity(&path).is_same_file(&first), "after another socket was bound");
}

/// On other systems the tests above are not skipped.
#[cfg(unix)]
#[test]
fn unix_supports_unix_sockets() {
    assert!(unix_sockets::is_supported());
}
