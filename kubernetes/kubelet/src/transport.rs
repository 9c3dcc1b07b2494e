//! The interface to files and sockets, implemented by the host's `AF_UNIX` sockets and, for tests,
//! in memory. Nothing else in this crate accesses files or sockets of the device plugin directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
pub use uds::Identity;

/// A host whose sockets have paths.
pub trait Transport: Clone + Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A socket that accepts connections.
    type Listener: Listener<Stream = Self::Stream>;
    /// A lock that this process has. Dropping it frees the lock, and so does the end of the process.
    type Lock: Send + 'static;

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

    /// Takes the lock `name` of a device plugin directory.
    ///
    /// # Errors
    /// `WouldBlock` if another process has the lock, with a text that names it, and any other error
    /// of the operating system.
    fn lock(&self, directory: &Path, name: &str) -> io::Result<Self::Lock>;
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

/// The folder of the lock files. Containers share the device plugin directory, and a kubelet that
/// starts empties it of files (1.26) or sockets, and of no folder (`CleanupPluginDirectory`,
/// `pkg/kubelet/cm/devicemanager/manager.go`).
const LOCKS: &str = "locks";

/// What to do if the access control list of a socket cannot be set.
const UNRESTRICTED_HINT: &str =
    "the rights of its directory decide who may connect; `doctor` shows who may write to it";

/// The host's `AF_UNIX` sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixSockets;

impl Transport for UnixSockets {
    type Stream = uds::UnixStream;
    type Listener = uds::UnixListener;
    type Lock = LockedFile;

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
        fs::remove_file(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|e| e.path())).collect()
    }

    fn lock(&self, directory: &Path, name: &str) -> io::Result<LockedFile> {
        let folder = directory.join(LOCKS);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = folder.join(name.replace(['/', '\\', ':'], "_") + ".lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) if path.exists() => Ok(LockedFile { path, file: Some(file) }),
            // The process that had the lock may have removed the file after it was opened here.
            Ok(()) | Err(TryLockError::WouldBlock) => {
                let text = format!("another process has the lock `{}`", path.display());
                Err(io::Error::new(io::ErrorKind::WouldBlock, text))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A locked file, which is removed when it is dropped.
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    file: Option<File>,
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Ignored: a file and a folder that stay harm nobody. The folder may have other locks.
        let _ = fs::remove_file(&self.path);
        // On Windows, the folder contains the file until then.
        self.file = None;
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

impl Listener for uds::UnixListener {
    type Stream = uds::UnixStream;

    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        uds::UnixListener::accept(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_lock_of_a_resource() {
        let folder = tempfile::tempdir().unwrap();
        let take = |name: &str| UnixSockets.lock(folder.path(), name);
        let first = take("example.com/gpu").unwrap();
        let refused = take("example.com/gpu").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(refused.to_string().starts_with("another process has the lock `"), "{refused}");
        let other = take("example.com/npu").unwrap();
        drop(first);
        let second = take("example.com/gpu").unwrap();
        drop((second, other));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        let missing = UnixSockets.lock(Path::new("missing"), "gpu").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
