//! A lock that one process at a time holds, and that the kernel releases when the
//! process ends, even if it is killed.
//!
//! The lock is an abstract Unix socket: a second bind to the same name fails, and no
//! file remains. Only Linux has such names. On other systems taking the lock always
//! succeeds; the steps that need it run on Linux only.

use std::path::Path;

use anyhow::Result;

/// A held lock; dropping it releases the lock.
pub(crate) struct ProcessLock {
    #[cfg(target_os = "linux")]
    _socket: std::os::unix::net::UnixListener,
}

#[cfg(not(target_os = "linux"))]
impl ProcessLock {
    /// Takes the lock named after `path`.
    #[allow(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
    pub(crate) fn wait(_path: &Path) -> Result<ProcessLock> {
        Ok(ProcessLock {})
    }
}

#[cfg(target_os = "linux")]
impl ProcessLock {
    /// Waits until no other process holds the lock named after `path`, and takes it.
    /// The path itself is not touched and need not exist.
    pub(crate) fn wait(path: &Path) -> Result<ProcessLock> {
        use anyhow::Context;

        /// How often a waiting process tries again.
        const RETRY_INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);
        let mut waiting = false;
        loop {
            match bind(path) {
                Ok(socket) => return Ok(ProcessLock { _socket: socket }),
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    if !waiting {
                        eprintln!("waiting for another xtask process that uses {}", path.display());
                        waiting = true;
                    }
                    std::thread::sleep(RETRY_INTERVAL);
                }
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot take the lock of {}", path.display()));
                }
            }
        }
    }
}

/// A socket name holds at most 107 bytes, so the path goes in as its hash.
#[cfg(target_os = "linux")]
fn bind(path: &Path) -> std::io::Result<std::os::unix::net::UnixListener> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    let key = crate::stable_hash::hash(&[path.as_os_str().as_encoded_bytes()]);
    let name = format!("directx-device-plugin-xtask-{key}");
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let first = ProcessLock::wait(&path).unwrap();
        assert!(bind(&path).is_err());
        ProcessLock::wait(&folder.path().join("b")).unwrap();
        let second = std::thread::spawn(move || ProcessLock::wait(&path).map(|_| ()));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap().unwrap();
    }
}
