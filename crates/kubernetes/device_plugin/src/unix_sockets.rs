//! `AF_UNIX` for tokio, the same on Unix and Windows: the [`Transport`] of the host.
//!
//! # Who may connect
//!
//! Only the user that creates a socket may connect to it. For a device plugin this is the
//! kubelet's user (root or `LocalSystem`). On Unix, the mode of the socket is 0600, and no process
//! can connect before the mode is set, because the socket starts to listen after that. On Windows,
//! a socket has no mode: a process that connects needs write access to the socket's file. So the
//! access control list of the file is set, for SYSTEM, Administrators and the owner. If Windows
//! refuses that, what the file inherits from the directory decides ([`UnixListener::restricted`]).
//!
//! # What is tested where
//!
//! On Unix, this is tokio's own `AF_UNIX` support. On Windows, tokio and the standard library do
//! not support `AF_UNIX`, and this module registers a socket of `socket2` with tokio as if it
//! were a TCP socket. The poll interface that tokio uses there (AFD) is not limited to TCP, and has
//! been shown to work with `AF_UNIX` (tokio-rs/mio, issue 1609 and pull requests 1610 and 1955).
//! That code takes the address family from the address, so that its tests run over IPv4 under Wine,
//! which does not support `AF_UNIX`. `tests/sockets.rs` runs on every host that does.

#[cfg_attr(unix, path = "unix_sockets/sys/unix.rs")]
#[cfg_attr(windows, path = "unix_sockets/sys/windows.rs")]
mod sys;

#[cfg(windows)]
mod access_rights;
#[cfg(any(windows, test))]
mod one_per_path;
mod socket_file;

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use self::socket_file::directory_of;
pub use self::sys::is_trusted;
use crate::transport::{Identity, Listener, Lock, Transport};

/// The maximum length of a socket path, in bytes of UTF-8 or of the Unix path: the size of
/// `sun_path` without the terminating NUL, 108 − 1 on Linux and Windows (`unix(7)`; `afunix.h`).
pub const MAX_PATH_BYTES: usize = 107;

/// Whether this host supports `AF_UNIX` sockets. Every Unix does, Windows does from Windows 10
/// version 1803 and Windows Server 2019 on, and Wine 10 does not.
#[must_use]
pub fn is_supported() -> bool {
    sys::is_supported()
}

/// For tests with sockets: whether to skip the test, because this host does not support `AF_UNIX`.
/// Prints the name of the test, which is the name of its thread, and the reason. The test harness
/// hides what a successful test prints with `println!`, so this writes to standard error directly.
#[doc(hidden)]
#[must_use]
pub fn skips_test() -> bool {
    if is_supported() {
        return false;
    }
    let test = std::thread::current().name().unwrap_or("unnamed test").to_owned();
    // Ignored, because a test that is skipped needs no output to succeed.
    let _ = writeln!(io::stderr(), "{test}: skipped: this host does not support AF_UNIX sockets");
    true
}

/// The folder of the lock files, below the device plugin directory, which containers share. A
/// kubelet that starts removes files (1.26) or sockets from the directory, but no folder
/// (`CleanupPluginDirectory`, `pkg/kubelet/cm/devicemanager/manager.go`). Only the owner may open
/// the folder and its files, because whoever may read a file can lock it.
const LOCKS: &str = "locks";

/// The hint of a warning that something was moved aside.
const FOREIGN_HINT: &str = "find out who created it, then remove it; let only administrators write \
                            to the directory";

/// The hint of a warning that the access control list of a socket cannot be set.
const UNRESTRICTED_HINT: &str = "the rights of its directory decide who may connect";

/// The host's `AF_UNIX` sockets. Binding panics outside a tokio runtime with I/O enabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixSockets;

impl Transport for UnixSockets {
    type Stream = UnixStream;
    type Listener = UnixListener;
    type Lock = LockedFile;

    fn bind(&self, path: &Path) -> io::Result<UnixListener> {
        let bound = sys::bind(check_path(path)?);
        let (listener, restricted) = bound.map_err(|error| {
            // The error of Windows is `WSAENETDOWN`, which has other causes too.
            let directory = directory_of(path);
            if matches!(directory.try_exists(), Ok(false)) {
                let text = format!("directory `{}` does not exist", directory.display());
                return io::Error::new(io::ErrorKind::NotFound, text);
            }
            error
        })?;
        if let Err(error) = &restricted {
            tracing::warn!(
                socket = %path.display(),
                %error,
                hint = UNRESTRICTED_HINT,
                "cannot restrict access to the plugin socket"
            );
        }
        Ok(UnixListener { listener, restricted })
    }

    async fn connect(&self, path: &Path) -> io::Result<UnixStream> {
        sys::connect(check_path(path)?).await
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        sys::identity(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|e| e.path())).collect()
    }

    fn lock(&self, directory: &Path, name: &str) -> io::Result<LockedFile> {
        let folder = directory.join(LOCKS);
        provide_folder_for_owner(&folder)?;
        let path = folder.join(name.replace(['/', '\\', ':'], "_") + ".lock");
        let file = match sys::open_lock(&path) {
            // Windows refuses to open a file that is being deleted.
            Err(error) if cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, error));
            }
            opened => opened?,
        };
        // The file may exist, with other rights.
        sys::restrict_to_owner(&path)?;
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

/// A connection between two processes on this host. On Windows, tokio treats it as a TCP stream.
pub type UnixStream = sys::Stream;

/// A socket in the file system that accepts connections.
///
/// Dropping it closes the socket and keeps the file: the owner of the name decides when to remove
/// it.
#[derive(Debug)]
pub struct UnixListener {
    listener: sys::Listener,
    restricted: io::Result<()>,
}

impl UnixListener {
    /// Whether the access to the socket's file is restricted to its owner, SYSTEM and
    /// Administrators. On Unix, it always is.
    ///
    /// # Errors
    /// Windows refused to change the access control list, for the returned reason. The file has
    /// what it inherits from its directory.
    pub fn restricted(&self) -> Result<(), &io::Error> {
        self.restricted.as_ref().copied()
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&mut self) -> io::Result<UnixStream> {
        sys::accept(&self.listener).await
    }
}

/// Rejects paths for which the operating system returns a less helpful error.
fn check_path(path: &Path) -> io::Result<&Path> {
    let length = path.as_os_str().len();
    if length <= MAX_PATH_BYTES {
        return Ok(path);
    }
    let path = path.display();
    let text =
        format!("socket path `{path}` is {length} bytes long; the limit is {MAX_PATH_BYTES}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Creates a folder that only its owner may use; on Windows, SYSTEM and Administrators may use it,
/// too. An existing folder gets these rights. Anything else of this name is moved aside: an ordinary
/// user of the node may have put it there, and it must not stop this program.
///
/// # Errors
/// Any error of the operating system. Windows cannot move a folder in which a file is open.
pub fn provide_folder_for_owner(path: &Path) -> io::Result<()> {
    match sys::create_folder_for_owner(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => return created,
    }
    if is_folder_of_owner(path)? {
        return sys::restrict_to_owner(path);
    }
    let aside = move_aside(path)?;
    tracing::warn!(
        path = %path.display(),
        moved_to = %aside.display(),
        hint = FOREIGN_HINT,
        "moved aside what is not a folder of this program's account or of an administrator"
    );
    sys::create_folder_for_owner(path)
}

/// Whether a folder is at `path`, not a link to one, and root, an administrator or the account of
/// this process owns it.
///
/// # Errors
/// Nothing is at `path`, or any other error of the operating system.
pub fn is_folder_of_owner(path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.is_dir() && is_trusted(path)?)
}

/// Renames what is at `path`, and returns its new path. A link is renamed, not what it leads to.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // An ordinary user cannot create all of these names in advance.
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".moved-{}", since_epoch.as_nanos()));
    let aside = PathBuf::from(aside);
    fs::rename(path, &aside).map_err(|error| {
        let text = format!("cannot move `{}` aside: {error}", path.display());
        io::Error::new(error.kind(), text)
    })?;
    Ok(aside)
}

#[cfg(windows)]
fn is_in_place(_: &File, _: &Path) -> bool {
    true
}

/// Whether the path leads to the open file. If that cannot be found out, it counts as true.
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
            // Windows cannot remove a file that is open, here or in another daemon.
            self.file = None;
        }
        if self.is_held() {
            // Errors are ignored, because a file or a folder that stays does no harm. The folder
            // may contain other locks.
            let _ = fs::remove_file(&self.path);
            let _ = self.path.parent().map(fs::remove_dir);
        }
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
        if chown(&file, Some(12345), None).is_err() {
            eprintln!("skipped: only root can give a file to another account");
            return;
        }
        let error = UnixSockets.lock(directory.path(), "gpu").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Other);
        let text = format!("`{}` belongs to another account", file.display());
        assert!(error.to_string().starts_with(&text), "{error}");
    }

    /// Creates something at a path.
    type Create = Box<dyn Fn(&Path)>;

    #[test]
    fn what_is_in_the_place_of_the_folder_is_moved_aside_and_no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join(LOCKS);
        let other = directory.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "").unwrap();
        let file = |path: &Path| fs::write(path, "").unwrap();
        #[cfg_attr(windows, allow(unused_mut, reason = "Windows lets few accounts make a link"))]
        let mut foreign: Vec<Create> = vec![Box::new(file)];
        #[cfg(unix)]
        {
            use std::os::unix::fs::{chown, symlink};
            let target = other.clone();
            foreign.push(Box::new(move |path| symlink(&target, path).unwrap()));
            if chown(&other, Some(12345), None).is_ok() {
                foreign.push(Box::new(|path| {
                    fs::create_dir(path).unwrap();
                    fs::write(path.join("gpu.lock"), "").unwrap();
                    chown(path, Some(12345), None).unwrap();
                }));
            }
        }
        for (index, create) in foreign.iter().enumerate() {
            create(&folder);
            assert!(!is_folder_of_owner(&folder).unwrap());
            let lock = UnixSockets.lock(directory.path(), "gpu").unwrap();
            assert!(lock.is_held() && is_folder_of_owner(&folder).unwrap());
            drop(lock);
            // What was moved, and the folder `other`.
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), index + 2);
        }
        assert!(other.join("file").exists());
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1, "no lock was made there");
    }

    /// Windows refuses to open a file that is being deleted in the same way as a read-only one.
    #[cfg(windows)]
    #[test]
    fn a_lock_that_cannot_be_opened_is_waited_for() {
        // Wine without sockets also opens read-only files for root.
        if skips_test() {
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
