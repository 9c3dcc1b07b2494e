//! The file of a socket, and the errors about it.

use std::fs;
use std::io;
use std::path::Path;

#[cfg(any(windows, test))]
use crate::transport::Identity;

/// Removes the file of a socket that was bound and then could not be completed, so that a caller
/// that tries again leaves no files behind.
pub(crate) fn remove_on_failure<T>(path: &Path, finished: io::Result<T>) -> io::Result<T> {
    // The original error is more useful than one of the removal.
    finished.inspect_err(|_| _ = fs::remove_file(path))
}

/// The directory of `path`, which is the current one for a bare file name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(crate) fn owned_by_another(path: &Path) -> io::Error {
    io::Error::other(format!("`{}` belongs to another account; remove it", path.display()))
}

/// The identity of a file that was opened, or of its entry in the directory if opening it failed.
/// A file that does not exist is not searched in the directory.
///
/// # Errors
/// The directory cannot be listed either.
#[cfg(any(windows, test))]
pub(crate) fn opened_or_listed(
    opened: io::Result<Identity>,
    list: impl FnOnce() -> io::Result<Option<Identity>>,
) -> io::Result<Option<Identity>> {
    match opened {
        Ok(identity) => Ok(Some(identity)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(_) => list(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_stays_only_if_the_socket_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        fs::write(&path, "").unwrap();
        remove_on_failure(&path, Ok(())).unwrap();
        assert!(path.exists());
        let failed: io::Result<()> = Err(io::ErrorKind::OutOfMemory.into());
        let error = remove_on_failure(&path, failed).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(!path.exists());
    }

    #[test]
    fn a_bare_file_name_is_in_the_current_directory() {
        assert_eq!(directory_of(Path::new("a.sock")), Path::new("."));
        assert_eq!(directory_of(Path::new("b/a.sock")), Path::new("b"));
    }

    #[test]
    fn the_directory_is_listed_only_if_an_existing_file_cannot_be_opened() {
        let opened = Identity::opened([1, 70], [133_000, 0]);
        let listed = Identity::listed([133_000, 0]);
        let unused = || -> io::Result<Option<Identity>> { panic!("the directory is listed") };
        assert_eq!(opened_or_listed(Ok(opened), unused).unwrap(), Some(opened));
        let missing = Err(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(opened_or_listed(missing, unused).unwrap(), None);
        // 433 is `ERROR_NO_SUCH_DEVICE`, which some implementations of Win32 return for every
        // socket.
        let cannot_open = || Err(io::Error::from_raw_os_error(433));
        assert_eq!(opened_or_listed(cannot_open(), || Ok(Some(listed))).unwrap(), Some(listed));
        assert_eq!(opened_or_listed(cannot_open(), || Ok(None)).unwrap(), None);
        let denied = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        let error = opened_or_listed(cannot_open(), denied).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
