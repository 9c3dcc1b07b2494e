//! The tests use plain files and folders. Wine stores only what the mode of Unix can express.

use win32::directory_access::directory_writers;

use super::*;

/// The accounts that may write to a file, except for Windows, the administrators and the owner.
fn strangers(path: &Path) -> Vec<String> {
    let writers = directory_writers(path).unwrap();
    let strangers = writers.iter().filter(|writer| !writer.is_owner);
    strangers.map(|writer| writer.account.to_string()).collect()
}

#[test]
fn nobody_else_may_write_to_a_restricted_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sock");
    std::fs::write(&path, "").unwrap();
    set(&path, w!("D:P(A;;FA;;;WD)")).unwrap();
    assert_eq!(strangers(&path), ["Everyone (S-1-1-0)"]);
    restrict_to_owner(&path).unwrap();
    assert!(is_trusted(&path).unwrap(), "the account of the test owns it");
    assert_eq!(strangers(&path), [""; 0]);
    // The account of the test can still use the file.
    std::fs::write(&path, "x").unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(restrict_to_owner(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
}
