//! The interface to files and sockets, implemented by the host's `AF_UNIX` sockets and, for tests,
//! in memory. Nothing else in this crate accesses files or sockets of the device plugin directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::future::Future;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};

pub use crate::unix_sockets::Identity;
use crate::unix_sockets::{self, UnixListener, UnixStream, restrict_to_owner};

/// A host whose sockets have paths.
pub trait Transport: Clone + Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A socket that accepts connections.
    type Listener: Listener<Stream = Self::Stream>;
    /// A lock that this process has. Dropping it frees the lock, and so does the end of the process.
    type Lock: Lock;

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
    /// can distinguish them ([`unix_sockets::identity`] has the exception).
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
    /// `WouldBlock` if another process has the lock, with a text that names it, `NotFound` if the
    /// directory does not exist, and any other error of the operating system.
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

/// A lock that this process has taken.
pub trait Lock: Send + 'static {
    /// Whether the lock still keeps other processes out. It does not if its file was removed.
    fn is_held(&self) -> bool;
}

/// The folder of the lock files. Containers share the device plugin directory, and a kubelet that
/// starts empties it of files (1.26) or sockets, and of no folder (`CleanupPluginDirectory`,
/// `pkg/kubelet/cm/devicemanager/manager.go`). Whoever may read a file can lock it.
const LOCKS: &str = "locks";

/// What follows if the access control list of a socket cannot be set.
const UNRESTRICTED_HINT: &str = "the rights of its directory decide who may connect";

/// The host's `AF_UNIX` sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixSockets;

impl Transport for UnixSockets {
    type Stream = UnixStream;
    type Listener = UnixListener;
    type Lock = LockedFile;

    fn bind(&self, path: &Path) -> io::Result<Self::Listener> {
        let listener = UnixListener::bind(path)?;
        if let Err(error) = listener.restricted() {
            let (socket, hint) = (path.display(), UNRESTRICTED_HINT);
            tracing::warn!(%socket, %error, hint, "cannot restrict access to the plugin socket");
        }
        Ok(listener)
    }

    fn connect(&self, path: &Path) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        unix_sockets::connect(path.to_owned())
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        unix_sockets::identity(path)
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
            _ => restrict_to_owner(&folder)?,
        }
        let path = folder.join(name.replace(['/', '\\', ':'], "_") + ".lock");
        let mut options = OpenOptions::new();
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, SHARE_READ_AND_WRITE);
        let file = match options.write(true).create(true).truncate(false).open(&path) {
            // Windows refuses to open a file that is being deleted.
            Err(error) if cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, error));
            }
            opened => opened?,
        };
        restrict_to_owner(&path)?;
        match file.try_lock() {
            Ok(()) if is_in_place(&file, &path) => Ok(LockedFile { path, file: Some(file) }),
            // The process that had the lock may have removed the file after it was opened here.
            Ok(()) | Err(TryLockError::WouldBlock) => {
                let text = format!("another process has the lock `{}`", path.display());
                Err(io::Error::new(io::ErrorKind::WouldBlock, text))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The share mode of a lock, without deletion: nobody can remove or rename an open lock or its
/// folder.
#[cfg(windows)]
const SHARE_READ_AND_WRITE: u32 = 0x1 | 0x2;

#[cfg(windows)]
fn is_in_place(_: &File, _: &Path) -> bool {
    true
}

/// Whether the path leads to the open file, as far as this can be found out.
#[cfg(unix)]
fn is_in_place(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(file), Ok(found)) => (file.dev(), file.ino()) == (found.dev(), found.ino()),
        (_, Err(error)) => error.kind() != io::ErrorKind::NotFound,
        (Err(_), _) => true,
    }
}

/// A locked file, which is removed when it is dropped.
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    file: Option<File>,
}

impl Lock for LockedFile {
    fn is_held(&self) -> bool {
        self.file.as_ref().is_none_or(|file| is_in_place(file, &self.path))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if cfg!(windows) {
            // Windows cannot remove the file before it is closed, nor after another daemon opened
            // it.
            self.file = None;
        }
        if self.is_held() {
            // Ignored: a file and a folder that stay harm nobody. The folder may have other locks.
            let _ = fs::remove_file(&self.path);
            let _ = self.path.parent().map(fs::remove_dir);
        }
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        UnixListener::accept(self)
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
        assert!(second.is_held() && other.is_held());
        drop((second, other));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        let missing = UnixSockets.lock(Path::new("missing"), "gpu").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_lock_whose_file_was_removed_is_not_held() {
        let folder = tempfile::tempdir().unwrap();
        let first = UnixSockets.lock(folder.path(), "gpu").unwrap();
        let removed = fs::remove_dir_all(folder.path().join(LOCKS));
        if cfg!(windows) {
            assert!(removed.is_err() && first.is_held());
            return;
        }
        assert!(removed.is_ok() && !first.is_held());
        let second = UnixSockets.lock(folder.path(), "gpu").unwrap();
        assert!(!first.is_held() && second.is_held());
        drop(first);
        assert!(second.is_held());
        UnixSockets.lock(folder.path(), "gpu").unwrap_err();
    }

    /// Whoever may read a file can lock it.
    #[cfg(unix)]
    #[test]
    fn locks_are_only_for_the_user_of_the_process() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join(LOCKS);
        let file = folder.join("gpu.lock");
        // Earlier versions left such a file.
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "").unwrap();
        for (path, mode) in [(&folder, 0o755), (&file, 0o644)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let _lock = UnixSockets.lock(directory.path(), "gpu").unwrap();
        for (path, mode) in [(&folder, 0o700), (&file, 0o600)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
        }
        for path in [&file, &folder] {
            if chown(path, Some(12345), None).is_err() {
                eprintln!("skipped: only root can give a file to another account");
                return;
            }
            let error = UnixSockets.lock(directory.path(), "gpu").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Other);
            let text = format!("`{}` belongs to another account", path.display());
            assert!(error.to_string().starts_with(&text), "{error}");
            chown(path, Some(0), None).unwrap();
        }
    }

    /// Windows refuses to open a file that is being deleted in the same way as a read-only one.
    #[cfg(windows)]
    #[test]
    fn a_lock_that_cannot_be_opened_is_waited_for() {
        // Wine without sockets also opens read-only files for root.
        if unix_sockets::skips_test() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(LOCKS)).unwrap();
        let file = directory.path().join(LOCKS).join("gpu.lock");
        fs::write(&file, "").unwrap();
        let mut permissions = fs::metadata(&file).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&file, permissions).unwrap();
        let error = UnixSockets.lock(directory.path(), "gpu").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
    }
}
