//! The interface to files and sockets, implemented by the host's `AF_UNIX` sockets and, for tests,
//! in memory. Nothing else in this crate accesses files or sockets of the device plugin directory.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
pub use uds::Identity;

use crate::lock::FileLock;

/// A host whose sockets have paths.
pub trait Transport: Clone + Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A socket that accepts connections.
    type Listener: Listener<Stream = Self::Stream>;

    /// Creates a socket that only the kubelet's user can connect to, and listens on it. If this
    /// fails, it leaves no file behind.
    ///
    /// # Errors
    /// `NotFound` if the directory does not exist, `AddrInUse` if the path exists, and any other
    /// error of the operating system.
    fn bind(&self, path: &Path) -> io::Result<Self::Listener>;

    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// `NotFound` or `ConnectionRefused` if no process listens, and any other error of the operating
    /// system.
    fn connect(&self, path: &Path) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// The identity of the file at `path`, or `None` if it does not exist. Two different sockets
    /// that have the same path one after the other have different identities, as far as the host
    /// can distinguish them ([`uds::identity`] has the exception).
    ///
    /// # Errors
    /// Any error of the operating system, except that the path does not exist.
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>>;

    /// Removes the file of a socket. A listener on the socket stays open.
    ///
    /// # Errors
    /// Any error of the operating system, including `NotFound`.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The paths of the files in a directory.
    ///
    /// # Errors
    /// Any error of the operating system, including `NotFound`.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Takes the lock `name` of a device plugin directory. Dropping it frees the lock, and so does
    /// the end of the process.
    ///
    /// # Errors
    /// `WouldBlock` if another process has the lock, with a text that names it, and any other error
    /// of the operating system.
    fn lock(&self, directory: &Path, name: &str) -> io::Result<Box<dyn Lock>>;
}

/// A socket that accepts connections.
pub trait Listener: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection. Cancel safe.
    ///
    /// # Errors
    /// Any error of the operating system. The listener stays usable.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// A lock that this process has.
pub trait Lock: Send {
    /// Whether no other process can take the lock, which it can after its file was removed.
    fn is_held(&self) -> bool;
}

/// What to do if the access control list of a socket cannot be set.
const UNRESTRICTED_HINT: &str =
    "the rights of its directory decide who may connect; `doctor` shows who may write to it";

/// The host's `AF_UNIX` sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixSockets;

impl Transport for UnixSockets {
    type Stream = uds::UnixStream;
    type Listener = uds::UnixListener;

    fn bind(&self, path: &Path) -> io::Result<Self::Listener> {
        let listener = uds::UnixListener::bind(path)?;
        if let Err(error) = listener.restricted() {
            let (socket, hint) = (path.display(), UNRESTRICTED_HINT);
            tracing::warn!(%socket, %error, hint, "cannot restrict access to the plugin socket");
        }
        Ok(listener)
    }

    fn connect(&self, path: &Path) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        uds::connect(path.to_owned())
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        uds::identity(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?.map(|entry| entry.map(|e| e.path())).collect()
    }

    fn lock(&self, directory: &Path, name: &str) -> io::Result<Box<dyn Lock>> {
        FileLock::take(directory, name).map(|lock| Box::new(lock) as Box<dyn Lock>)
    }
}

impl Listener for uds::UnixListener {
    type Stream = uds::UnixStream;

    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        uds::UnixListener::accept(self)
    }
}
