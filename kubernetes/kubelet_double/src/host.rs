//! What the kubelet needs of a host besides sockets.

use std::io;
use std::path::Path;

use kubelet::{Transport, UnixSockets};

/// A place with directories and sockets in them.
pub trait Host: Transport {
    /// Makes a directory and those above it.
    ///
    /// # Errors
    /// What the system says; that it is there is no error.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Whether `path` is a socket, as the kubelet's clean-up sees it.
    fn is_socket(&self, path: &Path) -> bool;
}

impl Host for UnixSockets {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
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
