//! The interface to files and sockets, implemented by the host's `AF_UNIX` sockets and, for tests,
//! in memory. Nothing else in this crate accesses files or sockets of the device plugin directory.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};

/// A host whose sockets have paths.
pub trait Transport: Clone + Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A socket that accepts connections.
    type Listener: Listener<Stream = Self::Stream>;
    /// A lock that this process has. Dropping it frees the lock, and so does the end of the
    /// process.
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
    /// `NotFound` or `ConnectionRefused` if no process listens, and any other error of the
    /// operating system.
    fn connect(&self, path: &Path) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// The identity of the file at `path`, or `None` if it does not exist. Two different sockets
    /// that have the same path one after the other have different identities.
    ///
    /// There is one exception: on a Windows host on which a socket's file cannot be opened, a file
    /// that replaces a deleted one within 15 seconds looks the same, because it gets the creation
    /// time of the deleted one (Microsoft, "Windows NT contains file system tunneling
    /// capabilities").
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

/// What is known about the file of a socket at one moment.
///
/// Two observations are compared with [`Identity::is_same_file`]. The file's number is not always
/// known, so `==` can differ for two observations of the same file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The volume of the file and its number there, if the file could be opened.
    file: Option<[u64; 2]>,
    /// The part of the directory's entry that never changes while the file exists.
    entry: [u64; 2],
}

impl Identity {
    /// Creates the identity of a file that could be opened, from its volume, its number there and
    /// what the directory says about it.
    #[must_use]
    pub const fn opened(file: [u64; 2], entry: [u64; 2]) -> Self {
        Identity { file: Some(file), entry }
    }

    /// Creates the identity of a file when only the entry in its directory is known.
    #[must_use]
    pub const fn listed(entry: [u64; 2]) -> Self {
        Identity { file: None, entry }
    }

    /// Whether both were observed of the same file. If the number of the file is unknown in one of
    /// them, because the file could be opened only once, only the entries in the directory are
    /// compared: a file that can no longer be opened is not a new file.
    #[must_use]
    pub fn is_same_file(&self, other: &Identity) -> bool {
        let numbers_agree = match (self.file, other.file) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        numbers_agree && self.entry == other.entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATED: [u64; 2] = [133_000, 0];
    const LATER: [u64; 2] = [133_001, 0];

    #[test]
    fn the_number_of_the_file_decides_where_it_is_known() {
        let file = Identity::opened([1, 70], CREATED);
        assert!(file.is_same_file(&Identity::opened([1, 70], CREATED)));
        // A file with the same name that is created within 15 seconds has the same creation time.
        assert!(!file.is_same_file(&Identity::opened([1, 71], CREATED)));
        assert!(!file.is_same_file(&Identity::opened([2, 70], CREATED)));
        // Some file systems use a number again immediately.
        assert!(!file.is_same_file(&Identity::opened([1, 70], LATER)));
    }

    #[test]
    fn a_file_that_can_be_opened_only_sometimes_stays_the_same() {
        let opened = Identity::opened([1, 70], CREATED);
        let listed = Identity::listed(CREATED);
        assert!(opened.is_same_file(&listed) && listed.is_same_file(&opened));
        assert!(listed.is_same_file(&listed));
        let recreated = Identity::listed(LATER);
        assert!(!opened.is_same_file(&recreated) && !recreated.is_same_file(&opened));
        assert!(!listed.is_same_file(&recreated));
    }
}
