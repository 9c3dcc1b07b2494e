//! The lock that lets one daemon of a node serve a resource.
//!
//! It is a lock of the operating system on a file, so a crash frees it. The file is in a folder of
//! the device plugin directory, which containers share: a kubelet that starts empties the directory
//! of files (1.26) or sockets, and of no folder (`CleanupPluginDirectory`,
//! `pkg/kubelet/cm/devicemanager/manager.go`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::transport::{Identity, Lock};

/// The folder of the locks.
const FOLDER: &str = "locks";

/// A locked file.
pub(crate) struct FileLock {
    path: PathBuf,
    identity: Identity,
    /// `None` once it is freed.
    file: Option<File>,
}

impl FileLock {
    /// Takes the lock `name` of `directory`, which must exist.
    ///
    /// # Errors
    /// `WouldBlock` if another process has the lock, and any other error of the operating system.
    pub(crate) fn take(directory: &Path, name: &str) -> io::Result<FileLock> {
        let folder = directory.join(FOLDER);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = folder.join(name.replace(['/', '\\', ':'], "_") + ".lock");
        let mut file = open_locked(&path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => held(&path),
            _ => error,
        })?;
        // Only for those who wait: the process may be in another container, with another number.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        let found = uds::identity(&path)?;
        match found {
            Some(identity) if !is_removed(&file) => {
                Ok(FileLock { path, identity, file: Some(file) })
            }
            // The process that had the lock has removed the file meanwhile.
            _ => Err(held(&path)),
        }
    }
}

impl Lock for FileLock {
    fn is_held(&self) -> bool {
        match uds::identity(&self.path) {
            Ok(found) => found.is_some_and(|found| found.is_same_file(&self.identity)),
            // A file that cannot be inspected is not a removed one.
            Err(_) => true,
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if cfg!(windows) {
            // Windows removes no file that is open, nor one that the next process has locked.
            self.file = None;
        }
        if self.is_held() {
            // Ignored: a file and a folder that stay harm nobody. The folder may have other locks.
            let _ = fs::remove_file(&self.path);
        }
        self.file = None;
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// Whether the open file has been removed, which Windows does to no file that is open here.
#[cfg(unix)]
fn is_removed(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

#[cfg(not(unix))]
fn is_removed(_: &File) -> bool {
    false
}

fn held(path: &Path) -> io::Error {
    let process = fs::read_to_string(path).unwrap_or_default();
    let text = match process.parse::<u32>() {
        Ok(process) => format!("process {process} has the lock `{}`", path.display()),
        Err(_) => format!("another process has the lock `{}`", path.display()),
    };
    io::Error::new(io::ErrorKind::WouldBlock, text)
}

#[cfg(not(windows))]
fn open_locked(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.try_lock()?;
    Ok(file)
}

/// Others may read who has the lock.
#[cfg(windows)]
fn open_locked(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_SHARE_READ: u32 = 1;
    const ERROR_SHARING_VIOLATION: i32 = 32;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).share_mode(FILE_SHARE_READ);
    options.open(path).map_err(|error| match error.raw_os_error() {
        Some(ERROR_SHARING_VIOLATION) => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_lock_of_a_resource() {
        let folder = tempfile::tempdir().unwrap();
        let take = |name: &str| FileLock::take(folder.path(), name);
        let first = take("example.com/gpu").unwrap();
        let refused = take("example.com/gpu").err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let process = format!("process {} has the lock `", std::process::id());
        assert!(refused.to_string().starts_with(&process), "{refused}");
        let other = take("example.com/npu").unwrap();
        drop(first);
        let second = take("example.com/gpu").unwrap();
        assert!(second.is_held());
        drop((second, other));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_lock_whose_file_is_removed_is_not_held() {
        let folder = tempfile::tempdir().unwrap();
        let first = FileLock::take(folder.path(), "gpu").unwrap();
        // Windows removes no file that is open.
        if fs::remove_dir_all(folder.path().join(FOLDER)).is_err() {
            return;
        }
        assert!(!first.is_held());
        let second = FileLock::take(folder.path(), "gpu").unwrap();
        assert!(second.is_held() && !first.is_held());
        drop(folder);
        let missing = FileLock::take(Path::new("missing"), "gpu").err().unwrap();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
