//! `socket`: whether sockets work in the kubelet's device plugin directory as the daemon
//! needs them.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, anyhow, ensure};
use device_plugin::unix_sockets::{UnixListener, UnixStream};
use device_plugin::{Identity, Listener as _, Transport as _, UnixSockets};
use tempfile::TempPath;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep};

use crate::finding::{Finding, Status, millis};
use crate::step::Step;
use crate::stop::Stop;

/// How often the identity is read, and the pause between two readings: the daemon reads it
/// every second.
const READINGS: usize = 15;
const PAUSE: Duration = Duration::from_millis(100);

/// How many bytes travel in each direction: more than one read returns.
const MESSAGE_LENGTH: usize = 64 * 1024;

/// Tests sockets in `directory`, and removes the socket even after a failure.
pub(super) async fn run(directory: &Path, stop: &Stop) -> anyhow::Result<Finding> {
    let millis = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    // The path removes its file when it is dropped, if the test has not removed it.
    let socket = TempPath::try_from_path(directory.join(format!("verify-{millis}.sock")))?;
    let tested = stop.or(test(directory, &socket)).await?;
    Ok(tested.unwrap_or_else(|error| {
        Step::Socket.error(&error).detail([format!("directory: {}", directory.display())])
    }))
}

async fn test(directory: &Path, path: &Path) -> anyhow::Result<Finding> {
    ensure!(
        device_plugin::unix_sockets::is_supported(),
        "this host does not support AF_UNIX sockets"
    );
    // On Windows the error of `bind` does not say that the directory is missing.
    ensure!(directory.is_dir(), "the device plugin directory does not exist");
    let began = Instant::now();
    let mut listener = bind(path)?;
    let created = began.elapsed();
    let unread = access(listener.restricted(), others(path))?;
    let began = Instant::now();
    let (client, server) = tokio::join!(UnixSockets.connect(path), listener.accept());
    let connected = began.elapsed();
    let connection = client.and_then(|client| Ok((client, server?)));
    let (mut client, mut server) =
        connection.context("cannot connect to a socket in the device plugin directory")?;
    let began = Instant::now();
    transfer(&mut client, &mut server).await?;
    transfer(&mut server, &mut client).await?;
    let exchanged = began.elapsed();
    let first = stable_identity(path).await?;
    let listed = std::fs::read_dir(directory)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .context("cannot list the device plugin directory")?;
    ensure!(
        listed.iter().any(|entry| entry.path() == path),
        "the list of the device plugin directory does not contain the socket"
    );
    drop(listener);
    remove(path)?;
    let again = bind(path)?;
    // The identities are equal on Windows hosts on which the file of a socket cannot be opened; see
    // `Transport::identity`.
    let replacement_differs = identity(path)? != first;
    drop(again);
    remove(path)?;
    let (status, what) = if replacement_differs {
        let what =
            "a socket was created, connected, listed and deleted, and its identity is stable";
        (Status::Ok, what)
    } else {
        (Status::Warning, "sockets work; a new socket looks like a deleted one with the same name")
    };
    let values = [("createMs", created), ("connectMs", connected), ("exchangeMs", exchanged)];
    Ok(Step::Socket
        .finding(status, what)
        .measured(values.map(|(key, time)| (key, millis(time))))
        .measured([("identityReadings", READINGS.into())])
        .detail(unread))
}

fn bind(path: &Path) -> anyhow::Result<UnixListener> {
    UnixSockets.bind(path).context("cannot create a socket in the device plugin directory")
}

/// Checks that only the owner and administrators may connect: that setting the access list
/// succeeded, and who else is on it now. Returns why the list cannot be read, if it cannot.
fn access(
    restricted: Result<(), &io::Error>,
    others: io::Result<Vec<String>>,
) -> anyhow::Result<Option<String>> {
    restricted
        .map_err(|error| anyhow!(command_line::error_chain(error)))
        .context("cannot restrict access to a socket")?;
    match others {
        Ok(others) if others.is_empty() => Ok(None),
        Ok(others) => {
            let what = "other accounts than the owner and administrators may connect to a socket";
            Err(anyhow!(others.join("; ")).context(what))
        }
        Err(error) => Ok(Some(format!("its access list cannot be read back: {error}"))),
    }
}

/// Who may connect besides the owner and administrators.
#[cfg(windows)]
fn others(path: &Path) -> io::Result<Vec<String>> {
    let writers = win32::directory_access::directory_writers(path)?.into_iter();
    let others = writers.filter(|writer| !writer.is_owner);
    Ok(others.map(|writer| writer.account.to_string()).collect())
}

/// Who may connect besides the owner.
#[cfg(unix)]
fn others(path: &Path) -> io::Result<Vec<String>> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = std::fs::metadata(path)?.permissions().mode();
    let is_private = mode & 0o777 == 0o600;
    Ok(if is_private { Vec::new() } else { vec![format!("mode {mode:o}")] })
}

async fn transfer(from: &mut UnixStream, to: &mut UnixStream) -> anyhow::Result<()> {
    let message = vec![0xA5; MESSAGE_LENGTH];
    let mut received = vec![0; MESSAGE_LENGTH];
    let (sent, read) = tokio::join!(from.write_all(&message), to.read_exact(&mut received));
    sent.and(read.map(drop)).context("cannot exchange bytes over a socket")?;
    ensure!(received == message, "the received bytes differ from the sent bytes");
    Ok(())
}

async fn stable_identity(path: &Path) -> anyhow::Result<Identity> {
    let first = identity(path)?;
    for _ in 1..READINGS {
        sleep(PAUSE).await;
        ensure!(identity(path)? == first, "the identity of a socket's file changed on its own");
    }
    Ok(first)
}

fn identity(path: &Path) -> anyhow::Result<Identity> {
    found_identity(path)?.context("the file of a socket disappeared")
}

fn found_identity(path: &Path) -> anyhow::Result<Option<Identity>> {
    UnixSockets.identity(path).context("cannot determine the identity of a socket's file")
}

fn remove(path: &Path) -> anyhow::Result<()> {
    std::fs::remove_file(path).context("cannot delete a socket")?;
    ensure!(found_identity(path)?.is_none(), "a deleted socket still exists");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_and_administrators_may_connect() {
        let failed = |found: anyhow::Result<_>| found.unwrap_err().to_string();
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let not_set = access(Err(&refused), Ok(Vec::new()));
        assert_eq!(failed(not_set), "cannot restrict access to a socket");
        let users = access(Ok(()), Ok(vec!["Users (S-1-5-32-545)".to_owned()])).unwrap_err();
        assert!(users.to_string().starts_with("other accounts than the owner"), "{users}");
        assert_eq!(users.source().unwrap().to_string(), "Users (S-1-5-32-545)");
        assert_eq!(access(Ok(()), Ok(Vec::new())).unwrap(), None);
        let unread = access(Ok(()), Err(refused)).unwrap().unwrap();
        assert!(unread.starts_with("its access list cannot be read back: "), "{unread}");
    }

    #[cfg(unix)]
    #[test]
    fn the_access_list_of_a_file_is_read_back() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        for (mode, found) in [(0o600, &[][..]), (0o660, &["mode 100660"])] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(others(&path).unwrap(), found);
        }
    }

    #[cfg(windows)]
    #[test]
    fn the_access_list_of_a_file_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        win32::directory_access::create_program_file(&path).unwrap();
        assert_eq!(others(&path).unwrap(), [""; 0], "everybody reads, nobody else writes");
        assert!(others(&folder.path().join("missing")).is_err());
    }

    #[cfg(windows)]
    #[tokio::test]
    async fn the_access_list_of_a_socket_is_read_back() {
        if device_plugin::unix_sockets::skips_test() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let listener = UnixSockets.bind(&path).unwrap();
        listener.restricted().unwrap();
        assert_eq!(others(&path).unwrap(), [""; 0]);
    }
}
