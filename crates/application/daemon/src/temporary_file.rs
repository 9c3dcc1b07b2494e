//! Temporary files beside files that several daemons of a node write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// A file with this content in `folder`, which no other daemon has. `create` creates it, or fails if
/// it exists.
///
/// Its name is random, but no error contains it, so equal errors have equal texts and are logged
/// once. The errors of [`NamedTempFile`] contain it.
///
/// # Errors
/// The error of the operating system.
pub(crate) fn temporary_file(
    folder: &Path,
    content: &[u8],
    create: fn(&Path) -> io::Result<File>,
) -> io::Result<NamedTempFile> {
    let new = Builder::new().make_in(folder, create)?;
    new.as_file().write_all(content)?;
    Ok(new)
}

/// Creates a file that no other account may use.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_not_contain_the_random_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let [first, second] =
            [0, 1].map(|_| temporary_file(&missing, b"", private_file).unwrap_err());
        assert_eq!(first.kind(), io::ErrorKind::NotFound);
        assert_eq!(first.to_string(), second.to_string());
    }

    #[test]
    fn two_of_them_are_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let new = |content| temporary_file(folder.path(), content, private_file).unwrap();
        let files = [&b"first"[..], b"second"].map(new);
        let contents = files.each_ref().map(|file| std::fs::read(file.path()).unwrap());
        assert_eq!(contents, [&b"first"[..], b"second"]);
        #[cfg(unix)]
        {
            let permissions = files[0].path().metadata().unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777, 0o600);
        }
        drop(files);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
