//! `socket`: whether sockets work in the kubelet's device plugin directory as the daemon
//! needs them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kubelet::{Identity, Transport, UnixSockets};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep};

use crate::step::{Finding, Measurement, Outcome, Step};
use crate::stop::Stop;

/// How often the identity is read, and the pause between two readings: the daemon reads it
/// every second.
const READINGS: usize = 15;
const PAUSE: Duration = Duration::from_millis(100);

/// How many bytes travel in each direction: more than one read returns.
const MESSAGE_LENGTH: usize = 64 * 1024;

/// Why sockets do not work.
#[derive(Debug, thiserror::Error)]
enum SocketError {
    #[error("this host does not support AF_UNIX sockets")]
    Unsupported,
    #[error("the device plugin directory does not exist")]
    NoDirectory,
    #[error("cannot create a socket in the device plugin directory")]
    Bind(#[source] io::Error),
    #[error("cannot connect to a socket in the device plugin directory")]
    Connect(#[source] io::Error),
    #[error("cannot exchange bytes over a socket")]
    Exchange(#[source] io::Error),
    #[error("the bytes that were received are not those that were sent")]
    OtherBytes,
    #[error("cannot determine the identity of a socket's file")]
    Identity(#[source] io::Error),
    #[error("the file of a socket disappeared on its own")]
    Disappeared,
    #[error("the identity of a socket's file changed on its own")]
    IdentityChanged,
    #[error("cannot list the device plugin directory")]
    List(#[source] io::Error),
    #[error("the list of the device plugin directory does not contain the socket")]
    NotListed,
    #[error("cannot delete a socket")]
    Remove(#[source] io::Error),
    #[error("a deleted socket still exists")]
    StillThere,
}

/// Tests sockets in `directory`. The socket is removed whatever happens.
pub(crate) async fn run(directory: &Path, stop: &Stop) -> Finding {
    let millis = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    let socket = SocketFile(directory.join(format!("verify-{millis}.sock")));
    match stop.or(test(directory, &socket.0)).await {
        Ok(Ok(works)) => works.finding(),
        Ok(Err(error)) => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            Finding::failed(Step::Socket, error.to_string())
                .detail(source)
                .detail([format!("directory: {}", directory.display())])
        }
        Err(reason) => Finding::unfinished(Step::Socket, reason),
    }
}

/// A socket's file, which is removed when this is dropped.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Usually the test has removed it.
        let _ = UnixSockets.remove(&self.0);
    }
}

async fn test(directory: &Path, path: &Path) -> Result<Works, SocketError> {
    let began = Instant::now();
    let listener = bind(path)?;
    let created = began.elapsed();
    let began = Instant::now();
    let connect = UnixSockets.connect(path);
    let (client, server) = tokio::join!(connect, listener.accept());
    let connected = began.elapsed();
    let client = client.map_err(SocketError::Connect)?;
    let server = server.map_err(SocketError::Connect)?;
    let began = Instant::now();
    exchange(client, server).await?;
    let exchanged = began.elapsed();
    let first = stable_identity(path).await?;
    if !UnixSockets.list(directory).map_err(SocketError::List)?.contains(&path.to_owned()) {
        return Err(SocketError::NotListed);
    }
    drop(listener);
    remove(path)?;
    let again = bind(path)?;
    let replacement_differs = identity(path)? != first;
    drop(again);
    remove(path)?;
    Ok(Works { created, connected, exchanged, replacement_differs })
}

/// Sockets that work.
struct Works {
    created: Duration,
    connected: Duration,
    exchanged: Duration,
    /// Whether a new socket with the name of a deleted one has another identity. Not on Windows
    /// hosts on which the file of a socket cannot be opened; see [`uds::identity`].
    replacement_differs: bool,
}

impl Works {
    fn finding(self) -> Finding {
        let (outcome, what) = if self.replacement_differs {
            (
                Outcome::Ok,
                "a socket was created, connected, listed and deleted, and its identity is stable",
            )
        } else {
            (
                Outcome::Warning,
                "sockets work; a new socket looks like a deleted one with the same name",
            )
        };
        Finding::new(Step::Socket, outcome, what).measured([
            Measurement::time("createMs", self.created),
            Measurement::time("connectMs", self.connected),
            Measurement::time("exchangeMs", self.exchanged),
            Measurement::count("identityReadings", READINGS),
        ])
    }
}

fn bind(path: &Path) -> Result<<UnixSockets as Transport>::Listener, SocketError> {
    if !uds::is_supported() {
        return Err(SocketError::Unsupported);
    }
    // On Windows the error of `bind` does not say so.
    if path.parent().is_some_and(|directory| !directory.is_dir()) {
        return Err(SocketError::NoDirectory);
    }
    UnixSockets.bind(path).map_err(SocketError::Bind)
}

/// Sends the message in both directions, one after the other.
async fn exchange<S>(mut client: S, mut server: S) -> Result<(), SocketError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    transfer(&mut client, &mut server).await?;
    transfer(&mut server, &mut client).await
}

async fn transfer<S>(from: &mut S, to: &mut S) -> Result<(), SocketError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let message = vec![0xA5; MESSAGE_LENGTH];
    let mut received = vec![0; MESSAGE_LENGTH];
    let (sent, read) = tokio::join!(from.write_all(&message), to.read_exact(&mut received));
    sent.and(read.map(drop)).map_err(SocketError::Exchange)?;
    if received == message { Ok(()) } else { Err(SocketError::OtherBytes) }
}

async fn stable_identity(path: &Path) -> Result<Identity, SocketError> {
    let first = identity(path)?;
    for _ in 1..READINGS {
        sleep(PAUSE).await;
        if identity(path)? != first {
            return Err(SocketError::IdentityChanged);
        }
    }
    Ok(first)
}

fn identity(path: &Path) -> Result<Identity, SocketError> {
    let identity = UnixSockets.identity(path).map_err(SocketError::Identity)?;
    identity.ok_or(SocketError::Disappeared)
}

fn remove(path: &Path) -> Result<(), SocketError> {
    UnixSockets.remove(path).map_err(SocketError::Remove)?;
    match UnixSockets.identity(path).map_err(SocketError::Identity)? {
        None => Ok(()),
        Some(_) => Err(SocketError::StillThere),
    }
}
