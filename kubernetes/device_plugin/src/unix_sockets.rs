//! `AF_UNIX` for tokio, the same on Unix and Windows.
//!
//! A [`UnixListener`] at a path, and [`UnixStream`]s that read and write like any other tokio stream.
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
//! That code takes the address family from the address that it is given. Its tests run it over
//! IPv4 under Wine: bind, listen, accept by readiness, connect, refused connections, reading and
//! writing in both directions, and half-close. `tests/sockets.rs` tests the rest on every host that
//! supports `AF_UNIX`: `socket(AF_UNIX)` itself, the bind to a path, the errors for a path that
//! exists or is missing, the identity of socket files, and that AFD reports the readiness of such
//! sockets as it does for TCP sockets. Wine 10 does not support `AF_UNIX`.

#[cfg_attr(unix, path = "unix_sockets/sys/unix.rs")]
#[cfg_attr(windows, path = "unix_sockets/sys/windows.rs")]
mod sys;

#[cfg(windows)]
mod access_rights;
mod bound_file;
mod identity;

use std::io::{self, Write as _};
use std::path::Path;

use self::bound_file::{directory_of, may_lack_directory};
pub use self::identity::Identity;
pub use self::sys::restrict_to_owner;

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

/// The identity of the file at `path`, or `None` if it does not exist. A socket that replaces
/// another one at the same path has another identity, with one exception: on a Windows host on
/// which a socket's file cannot be opened, a file that replaces a deleted one within 15 seconds
/// looks the same, because it gets the creation time of the deleted one (Microsoft, "Windows NT
/// contains file system tunneling capabilities").
///
/// # Errors
/// Any error of the operating system, except that the path does not exist.
pub fn identity(path: impl AsRef<Path>) -> io::Result<Option<Identity>> {
    sys::identity(path.as_ref())
}

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
    /// Creates a socket at `path` that only the same user can connect to, and listens on it. If this
    /// fails, it leaves no file at `path` that did not exist before.
    ///
    /// # Errors
    /// `NotFound` if the directory does not exist, which the text says, `AddrInUse` if `path` exists, `InvalidInput` if it is empty or longer than
    /// [`MAX_PATH_BYTES`], `Unsupported` if the host does not support `AF_UNIX`, and any other
    /// error of the operating system.
    ///
    /// # Panics
    /// If called outside a tokio runtime with I/O enabled.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = check_path(path.as_ref())?;
        let bound = sys::bind(path).map(|(listener, restricted)| Self { listener, restricted });
        bound.map_err(|error| {
            let directory = directory_of(path);
            if may_lack_directory(&error) && matches!(directory.try_exists(), Ok(false)) {
                let text = format!("directory `{}` does not exist", directory.display());
                return io::Error::new(io::ErrorKind::NotFound, text);
            }
            error
        })
    }

    /// Waits for the next connection. Cancel safe: a connection is either
    /// returned or stays queued.
    ///
    /// # Errors
    /// Any error of the operating system. The listener stays usable.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        sys::accept(&self.listener).await
    }

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

/// A connection between two processes on this host. On Windows, tokio treats it as a TCP stream.
pub type UnixStream = sys::Stream;

/// Connects to the socket at `path`.
///
/// # Errors
/// `NotFound` if the path does not exist or `ConnectionRefused` if no process listens (Windows
/// returns `ConnectionRefused` for both), `InvalidInput` if the path is empty or longer than
/// [`MAX_PATH_BYTES`], `Unsupported` if the host does not support `AF_UNIX`, and any other
/// error of the operating system.
pub async fn connect(path: impl AsRef<Path>) -> io::Result<UnixStream> {
    sys::connect(check_path(path.as_ref())?).await
}

/// Rejects paths for which the operating system returns a less helpful error, and the empty path,
/// which Linux interprets differently.
fn check_path(path: &Path) -> io::Result<&Path> {
    let length = path.as_os_str().len();
    let error = if length == 0 {
        "socket path is empty".to_owned()
    } else if length > MAX_PATH_BYTES {
        format!(
            "socket path `{}` is {length} bytes long; the limit is {MAX_PATH_BYTES}",
            path.display()
        )
    } else {
        return Ok(path);
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, error))
}
