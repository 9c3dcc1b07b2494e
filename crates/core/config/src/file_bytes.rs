//! Reads a file, as far as the parsers accept its length.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::text::MAX_BYTES;

/// Reads at most one byte more than `MAX_BYTES`, so that the parsers can refuse a larger file.
///
/// # Errors
/// The path is a directory, or any error of the operating system. `read_hint` has the fix.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Windows would only report that access is denied.
    if path.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory, not a file"));
    }
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Advice about an error of [`read_bytes`].
#[must_use]
pub(crate) fn read_hint(error: &io::Error) -> Option<&'static str> {
    (error.kind() == ErrorKind::IsADirectory).then_some("name a file in the folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_and_a_missing_file_are_different_errors() {
        let folder = tempfile::tempdir().unwrap();
        let error = read_bytes(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), "it is a directory, not a file");
        assert_eq!(read_hint(&error), Some("name a file in the folder"));
        let error = read_bytes(&folder.path().join("missing")).unwrap_err();
        assert_eq!((error.kind(), read_hint(&error)), (ErrorKind::NotFound, None));
    }

    #[test]
    fn no_more_is_read_than_the_parsers_need_to_refuse_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        File::create(&path).unwrap().set_len(2 * MAX_BYTES as u64).unwrap();
        assert_eq!(read_bytes(&path).unwrap().len(), MAX_BYTES + 1);
    }
}
