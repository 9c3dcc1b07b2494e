//! What the kubelet needs from a host in addition to sockets.

use std::io;
use std::path::Path;

use crate::{Transport, UnixSockets};

/// A host with directories and sockets.
pub trait Host: Transport {
    /// Creates a directory and its parents.
    ///
    /// # Errors
    /// Any error of the operating system, except that the directory exists.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Whether `path` is a directory.
    fn is_directory(&self, path: &Path) -> bool;

    /// Whether `path` is a socket, by the kubelet's cleanup criteria.
    fn is_socket(&self, path: &Path) -> bool;
}

impl Host for UnixSockets {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    #[cfg(unix)]
    fn is_socket(&self, path: &Path) -> bool {
        use std::os::unix::fs::FileTypeExt;
        std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
    }

    #[cfg(not(unix))]
    fn is_socket(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "sock")
    }
}
