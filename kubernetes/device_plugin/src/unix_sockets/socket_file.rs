//! The file of a socket, and the errors about it.

use std::fs;
use std::io;
use std::mem;
use std::path::Path;

#[cfg(any(windows, test))]
use crate::transport::Identity;

/// Calls `finish`, which completes a socket that was bound to `path`. If it fails or panics, the
/// file is removed, so that a caller that tries again leaves no files behind.
pub(crate) fn remove_on_failure<T>(
    path: &Path,
    finish: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let unfinished = Unfinished(path);
    let finished = finish()?;
    mem::forget(unfinished);
    Ok(finished)
}

/// The file of a socket that does not listen yet. Dropping this removes it.
struct Unfinished<'a>(&'a Path);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // Ignored, because the original error is more useful.
        let _ = fs::remove_file(self.0);
    }
}

/// The directory of `path`, which is the current one for a bare file name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(crate) fn owned_by_another(path: &Path) -> io::Error {
    io::Error::other(format!("`{}` belongs to another account; remove it", path.display()))
}

/// Whether a bind that failed with `error` may have failed because its directory does not exist.
/// Windows reports this as `WSAENETDOWN` (10050), which has other causes too.
pub(crate) fn may_lack_directory(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NetworkDown)
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn the_file_stays_only_if_the_socket_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let exists_after = |finish: fn() -> io::Result<()>| {
            fs::write(&path, "").unwrap();
            let result = catch_unwind(AssertUnwindSafe(|| remove_on_failure(&path, finish)));
            (result.is_ok_and(|result| result.is_ok()), path.exists())
        };
        assert_eq!(exists_after(|| Ok(())), (true, true));
        assert_eq!(exists_after(|| Err(io::ErrorKind::OutOfMemory.into())), (false, false));
        assert_eq!(exists_after(|| panic!("no runtime")), (false, false));
    }

    #[test]
    fn a_bare_file_name_is_in_the_current_directory() {
        assert_eq!(directory_of(Path::new("a.sock")), Path::new("."));
        assert_eq!(directory_of(Path::new("b/a.sock")), Path::new("b"));
    }

    #[test]
    fn the_network_is_down_for_windows_if_the_directory_is_missing() {
        #[cfg(windows)]
        assert!(may_lack_directory(&io::Error::from_raw_os_error(10050)));
        assert!(may_lack_directory(&io::ErrorKind::NetworkDown.into()));
        assert!(may_lack_directory(&io::ErrorKind::NotFound.into()));
        for other in [io::ErrorKind::AddrInUse, io::ErrorKind::Unsupported] {
            assert!(!may_lack_directory(&other.into()), "{other:?}");
        }
    }

    #[test]
    fn the_directory_is_listed_only_if_an_existing_file_cannot_be_opened() {
        let (opened, listed) =
            (Identity::opened([1, 70], [133_000, 0]), Identity::listed([133_000, 0]));
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
