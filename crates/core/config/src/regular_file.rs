//! Reads a file, if it is a regular one: a FIFO or a device can make a read wait forever.
//! Symbolic links are followed, because the files of a mounted `ConfigMap` are links.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::text::MAX_BYTES;

/// Reads at most one byte more than `MAX_BYTES`, so that the parsers can refuse a larger file.
///
/// # Errors
/// The operating system returns an error, or the path refers to no regular file. `read_hint` has
/// the fix.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    // This is checked before the file is opened, because opening a FIFO waits for its other end.
    let metadata = path.metadata()?;
    if metadata.is_dir() {
        let what = "it is a directory, not a regular file";
        return Err(io::Error::new(ErrorKind::IsADirectory, what));
    }
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Advice about an error of [`read_bytes`].
#[must_use]
pub(crate) fn read_hint(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::IsADirectory => Some("name a file in the folder"),
        ErrorKind::InvalidInput => {
            Some("copy what it holds into a regular file, and name that file")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_and_a_missing_file_are_different_errors() {
        let folder = tempfile::tempdir().unwrap();
        let error = read_bytes(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), "it is a directory, not a regular file");
        assert_eq!(read_hint(&error), Some("name a file in the folder"));
        let error = read_bytes(&folder.path().join("missing")).unwrap_err();
        assert_eq!((error.kind(), read_hint(&error)), (ErrorKind::NotFound, None));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, socket, link] = ["pipe", "socket", "link"].map(|name| folder.path().join(name));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for path in [&*pipe, &*link, &*socket, Path::new("/dev/zero")] {
            let error = read_bytes(path).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file");
            assert!(read_hint(&error).is_some());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_to_a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
        assert_eq!(read_bytes(&folder.path().join("link")).unwrap(), b"text");
    }
}
