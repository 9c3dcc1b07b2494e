//! A lock that one process at a time holds, and that the system releases when the
//! process ends, even if it is killed.
//!
//! On Linux the lock is an abstract Unix socket: a second bind to the same name fails, and
//! no file remains. Other systems have no such names; there it is a locked file in the
//! folder for temporary files.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

/// How often a waiting process tries again.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// A held lock; dropping it releases the lock.
pub(crate) struct ProcessLock {
    _held: Held,
}

#[cfg(target_os = "linux")]
type Held = std::os::unix::net::UnixListener;

#[cfg(not(target_os = "linux"))]
type Held = std::fs::File;

impl ProcessLock {
    /// Waits until no other process holds the lock named after `path`, and takes it.
    /// The path itself is not touched and need not exist.
    pub(crate) fn wait(path: &Path) -> Result<ProcessLock> {
        let mut waiting = false;
        loop {
            let held = take(path)
                .with_context(|| format!("cannot take the lock of {}", path.display()))?;
            if let Some(held) = held {
                return Ok(ProcessLock { _held: held });
            }
            if !waiting {
                eprintln!("waiting for another xtask process that uses {}", path.display());
                waiting = true;
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }
}

/// Takes the lock; `None` if another process holds it.
#[cfg(target_os = "linux")]
fn take(path: &Path) -> io::Result<Option<Held>> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    let name = SocketAddr::from_abstract_name(name(path))?;
    match UnixListener::bind_addr(&name) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

/// Takes the lock; `None` if another process holds it.
#[cfg(not(target_os = "linux"))]
fn take(path: &Path) -> io::Result<Option<Held>> {
    use std::fs::{File, TryLockError};

    let file = File::create(std::env::temp_dir().join(name(path)))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The lock's name. A socket name holds at most 107 bytes, so the path goes in as its hash.
fn name(path: &Path) -> String {
    let key = crate::stable_hash::hash(&[path.as_os_str().as_encoded_bytes()]);
    format!("directx-device-plugin-xtask-{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let first = ProcessLock::wait(&path).unwrap();
        assert!(take(&path).unwrap().is_none());
        ProcessLock::wait(&folder.path().join("b")).unwrap();
        let second = std::thread::spawn(move || ProcessLock::wait(&path).map(|_| ()));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap().unwrap();
    }
}
