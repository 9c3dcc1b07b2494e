//! Writes a file that a user names, whole or not at all.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use crate::cli::Failure;

/// Replaces the file `path`, or creates it. The text is written under a temporary name in
/// the same folder, which is then renamed: a failure leaves the old file, and a reader sees
/// the old file or the new one. A symbolic link stays, and what it refers to is replaced.
///
/// Devices and FIFOs (`/dev/stdout`) cannot be replaced, and are written directly.
pub fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    write(path, text.as_bytes()).map_err(|error| {
        let hint = hint(error.kind()).map(str::to_owned);
        let what = format!("cannot write `{}`", path.display());
        Failure::runtime(anyhow::Error::new(error).context(what)).hint_if_any(hint)
    })
}

fn hint(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::NotFound => Some("create its folder first, or name another file"),
        ErrorKind::IsADirectory => Some("name a file in the directory"),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::ResourceBusy => {
            Some(
                "name a file in a folder that you may write to; the file is written under a \
                 temporary name in its folder and then renamed",
            )
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Some(
            "name a file on a disk with more space; the old file, if there was one, is unchanged",
        ),
        _ => None,
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(old) if old.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(old) if old.is_file() => replace(&path.canonicalize()?, bytes, Some(old.permissions())),
        Ok(_) => fs::OpenOptions::new().write(true).open(path)?.write_all(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(path, bytes, None),
        Err(error) => Err(error),
    }
}

/// `permissions` are those of the old file.
fn replace(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let builder = &mut tempfile::Builder::new();
    #[cfg(unix)]
    let builder = {
        use std::os::unix::fs::PermissionsExt;
        // The permissions of any new file: the process's mask applies.
        builder.permissions(Permissions::from_mode(0o666))
    };
    // Dropping it, as every error does, removes it.
    let mut draft = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    draft.as_file_mut().write_all(bytes)?;
    if let Some(permissions) = permissions {
        draft.as_file().set_permissions(permissions)?;
    }
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Windows may refuse to replace a file that is open elsewhere.
    #[cfg(unix)]
    #[test]
    fn a_reader_of_the_old_file_keeps_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.yaml");
        write_file(&path, "old").unwrap();
        let old = fs::File::open(&path).unwrap();
        write_file(&path, "new").unwrap();
        assert_eq!(io::read_to_string(old).unwrap(), "old");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["host.yaml"]);
    }

    #[test]
    fn a_directory_or_a_missing_folder_is_an_error_with_a_fix() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("missing").join("host.yaml")] {
            let failure = format!("{:?}", write_file(&path, "text").unwrap_err());
            assert!(failure.contains("cannot write `") && failure.contains("hint: Some"));
        }
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(unix)]
    mod unix {
        use super::*;
        use std::os::unix::fs::{PermissionsExt, symlink};

        #[test]
        fn a_symbolic_link_and_permissions_stay() {
            let folder = tempfile::tempdir().unwrap();
            let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
            fs::write(&file, "old").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
            symlink("file", &link).unwrap();
            write_file(&link, "new").unwrap();
            assert_eq!(fs::read_link(&link).unwrap(), Path::new("file"));
            assert_eq!(fs::read_to_string(&file).unwrap(), "new");
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        }

        #[test]
        fn a_device_is_written_directly_and_stays() {
            write_file(Path::new("/dev/null"), "text").unwrap();
            let full = write_file(Path::new("/dev/full"), "text").unwrap_err();
            assert!(format!("{full:?}").contains("/dev/full"), "{full:?}");
            assert!(!Path::new("/dev/null").is_file());
        }
    }
}
