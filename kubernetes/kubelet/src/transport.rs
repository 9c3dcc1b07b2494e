//! The port to sockets: what the host, or a test's memory, provides.
//!
//! A path names a socket. Whoever implements this decides what stands behind it;
//! nothing else in this crate touches a file or a socket.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};

/// A place where sockets have paths.
pub trait Transport: Clone + Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A socket that accepts connections.
    type Listener: Listener<Stream = Self::Stream>;

    /// Makes a socket that only the kubelet's user can connect to, and listens on it.
    ///
    /// # Errors
    /// `NotFound` where the directory does not exist, `AddrInUse` where the path does,
    /// and what else the system says.
    fn bind(&self, path: &Path) -> io::Result<Self::Listener>;

    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// `NotFound` or `ConnectionRefused` where nobody listens, and what else the system says.
    fn connect(&self, path: &Path) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// What stands at `path`, or nothing. Two different sockets at one path, one after
    /// the other, have different identities.
    ///
    /// # Errors
    /// What the system says; that nothing is there is no error.
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>>;

    /// Removes the socket's name. A listener on it goes on without one.
    ///
    /// # Errors
    /// What the system says, `NotFound` included.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The paths in a directory.
    ///
    /// # Errors
    /// What the system says, `NotFound` included.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;
}

/// A socket that accepts connections.
pub trait Listener: Send + 'static {
    /// A connection.
    type Stream;

    /// Waits for the next connection. Cancel safe.
    ///
    /// # Errors
    /// What the system says; the listener stays usable.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// What tells one file from the next one with its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity([u64; 4]);

impl Identity {
    /// An identity made of whatever the transport has to tell files apart.
    #[must_use]
    pub const fn new(parts: [u64; 4]) -> Self {
        Identity(parts)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")?;
        self.0.iter().try_for_each(|part| write!(f, ".{part:x}"))
    }
}

/// The host's `AF_UNIX` sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixSockets;

impl Transport for UnixSockets {
    type Stream = uds::UnixStream;
    type Listener = uds::UnixListener;

    fn bind(&self, path: &Path) -> io::Result<Self::Listener> {
        uds::UnixListener::bind(path)
    }

    fn connect(&self, path: &Path) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        uds::UnixStream::connect(path.to_owned())
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        // Not `metadata`: on Windows a socket is a reparse point that cannot be followed.
        match std::fs::symlink_metadata(path) {
            Ok(metadata) => Ok(Some(file_identity(&metadata))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?.map(|entry| entry.map(|e| e.path())).collect()
    }
}

impl Listener for uds::UnixListener {
    type Stream = uds::UnixStream;

    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        uds::UnixListener::accept(self)
    }
}

/// Device, inode and time of last modification. An inode alone is reused at once by
/// some file systems. The time of the last status change would not do: it also moves
/// when somebody changes the socket's mode.
#[cfg(unix)]
fn file_identity(metadata: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity::new([
        metadata.dev(),
        metadata.ino(),
        metadata.mtime().cast_unsigned(),
        metadata.mtime_nsec().cast_unsigned(),
    ])
}

/// Times of creation and of the last write. The first alone would not do: Windows
/// gives a file that takes a deleted one's name within 15 seconds the old one's time
/// of creation (Microsoft, "Windows NT contains file system tunneling capabilities").
#[cfg(windows)]
fn file_identity(metadata: &std::fs::Metadata) -> Identity {
    use std::os::windows::fs::MetadataExt;
    Identity::new([metadata.creation_time(), metadata.last_write_time(), metadata.file_size(), 0])
}
