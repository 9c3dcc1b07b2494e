//! The identity of a socket's file on Windows: its number on the volume and its creation time.
//!
//! A socket is a reparse point that cannot be followed, so it is opened as a reparse point. The
//! times of the last write and the last access are not used, because Windows may change them while
//! the socket is in use.
#![allow(unsafe_code, reason = "calls kernel32.dll")]

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use windows::Win32::Foundation::HANDLE;
use windows::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_READ_ATTRIBUTES, GetFileInformationByHandle,
};

use crate::transport::Identity;
use crate::unix_sockets::socket_file::{directory_of, opened_or_listed};

/// The file's number if the file can be opened, and its entry in the directory otherwise.
pub(crate) fn identity(path: &Path) -> io::Result<Option<Identity>> {
    opened_or_listed(open(path).and_then(|file| of_open_file(&file)), || of_entry(path))
}

/// Opens the file itself, not what it points to, and only to read its attributes.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .access_mode(FILE_READ_ATTRIBUTES.0)
        .custom_flags((FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS).0)
        .open(path)
}

fn of_open_file(file: &File) -> io::Result<Identity> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: `file` keeps the handle open during the call, which writes only to `found`.
    unsafe { GetFileInformationByHandle(HANDLE(file.as_raw_handle()), &raw mut found) }?;
    let number = joined(found.nFileIndexHigh, found.nFileIndexLow);
    let created = found.ftCreationTime;
    Ok(Identity::opened(
        [u64::from(found.dwVolumeSerialNumber), number],
        [
            joined(created.dwHighDateTime, created.dwLowDateTime),
            joined(found.nFileSizeHigh, found.nFileSizeLow),
        ],
    ))
}

fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Lists the directory, because asking for the metadata of one path opens the file.
fn of_entry(path: &Path) -> io::Result<Option<Identity>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let entries = match directory_of(path).read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().eq_ignore_ascii_case(name) {
            return entry.metadata().map(|metadata| Some(of_metadata(&metadata)));
        }
    }
    Ok(None)
}

fn of_metadata(metadata: &Metadata) -> Identity {
    Identity::listed([metadata.creation_time(), metadata.file_size()])
}

#[cfg(test)]
mod tests {
    //! The tests use plain files, because Wine does not support `AF_UNIX`.

    use std::fs;

    use super::*;

    #[test]
    fn opened_and_listed_files_have_the_same_identity() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Kubelet.sock");
        fs::write(folder.path().join("other.sock"), "").unwrap();
        fs::write(&path, "").unwrap();
        let opened = identity(&path).unwrap().unwrap();
        let listed = of_entry(&folder.path().join("kubelet.sock")).unwrap().unwrap();
        assert_ne!(opened, listed);
        assert!(opened.is_same_file(&listed));
        let other = identity(&folder.path().join("other.sock")).unwrap().unwrap();
        assert!(!opened.is_same_file(&other));
    }

    #[test]
    fn a_missing_file_or_directory_has_no_identity() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().join("a.sock"), folder.path().join("missing").join("a.sock")] {
            assert_eq!(identity(&path).unwrap(), None);
            assert_eq!(of_entry(&path).unwrap(), None);
        }
    }

    #[test]
    fn times_that_change_while_a_file_is_used_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        fs::write(&path, "").unwrap();
        let observe = || {
            let created = fs::metadata(&path).unwrap().creation_time();
            (created, identity(&path).unwrap().unwrap(), of_entry(&path).unwrap().unwrap())
        };
        let before = observe();
        let times = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let changed = fs::FileTimes::new().set_accessed(times(1_000)).set_modified(times(2_000));
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_times(changed).unwrap();
        drop(file);
        let after = observe();
        // Wine has no creation time, and returns the time of the last write instead.
        let is_same = before.0 == after.0;
        assert_eq!(before.1.is_same_file(&after.1), is_same);
        assert_eq!(before.2.is_same_file(&after.2), is_same);
    }

    #[test]
    fn a_recreated_file_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let moved = folder.path().join("b.sock");
        fs::write(&path, "").unwrap();
        let before = identity(&path).unwrap().unwrap();
        // The first file stays, so its number is not used again.
        fs::rename(&path, &moved).unwrap();
        fs::write(&path, "").unwrap();
        assert!(!identity(&path).unwrap().unwrap().is_same_file(&before));
        assert!(identity(&moved).unwrap().unwrap().is_same_file(&before));
    }
}
