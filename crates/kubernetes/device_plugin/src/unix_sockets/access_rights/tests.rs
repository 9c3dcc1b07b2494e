//! The tests use plain files and folders. Wine stores only what the mode of Unix can express.

use std::ptr::null_mut;

use win32::directory_access::directory_writers;
use windows::Win32::Security::Authorization::ConvertSecurityDescriptorToStringSecurityDescriptorW;
use windows::core::PWSTR;

use super::*;

/// The accounts that may write to a file, except for Windows, the administrators and the owner.
fn strangers(path: &Path) -> Vec<String> {
    let writers = directory_writers(path).unwrap();
    let strangers = writers.iter().filter(|writer| !writer.is_owner);
    strangers.map(|writer| writer.account.to_string()).collect()
}

/// The entries of the access control list, as text.
fn entries(path: &Path) -> String {
    let file = open(path, READ_CONTROL.0).unwrap();
    let handle = HANDLE(file.as_raw_handle());
    let mut descriptor = Descriptor(PSECURITY_DESCRIPTOR::default());
    let part = DACL_SECURITY_INFORMATION;
    let all = Some(&raw mut descriptor.0);
    // SAFETY: `file` keeps the handle open during the call, which writes only to the variable.
    unsafe { GetSecurityInfo(handle, SE_FILE_OBJECT, part, None, None, None, None, all) }
        .ok()
        .unwrap();
    let mut text = PWSTR(null_mut());
    let result = &raw mut text;
    let from = descriptor.0;
    let revision = SDDL_REVISION_1;
    // SAFETY: the descriptor is valid, and `text` is writable.
    unsafe {
        ConvertSecurityDescriptorToStringSecurityDescriptorW(from, revision, part, result, None)
    }
    .unwrap();
    // SAFETY: Windows returned a null-terminated text.
    let listed = unsafe { text.to_string() }.unwrap();
    // SAFETY: Windows allocated the text with `LocalAlloc`.
    let _ = unsafe { LocalFree(Some(HLOCAL(text.0.cast()))) };
    listed[listed.find('(').unwrap()..].to_owned()
}

/// Otherwise, Windows would inherit the rights of the folder, and Wine would let everybody read.
#[test]
fn a_folder_and_a_lock_are_created_with_the_rights_that_existing_ones_get() {
    let outer = tempfile::tempdir().unwrap();
    let [created, existing] = ["created", "existing"].map(|name| outer.path().join(name));
    create_folder_for_owner(&created).unwrap();
    std::fs::create_dir(&existing).unwrap();
    assert_ne!(entries(&existing), entries(&created));
    restrict_to_owner(&existing).unwrap();
    assert_eq!(entries(&existing), entries(&created));
    let [created, existing] = [created, existing].map(|folder| folder.join("gpu.lock"));
    open_lock(&created).unwrap();
    std::fs::write(&existing, "").unwrap();
    restrict_to_owner(&existing).unwrap();
    assert_eq!(entries(&existing), entries(&created));
    let error = create_folder_for_owner(&existing).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
}

/// Names of resources can have 317 characters.
#[test]
fn a_lock_is_created_and_opened_at_a_path_of_any_length() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("f".repeat(200));
    create_folder_for_owner(&folder).unwrap();
    let path = folder.join("l".repeat(200));
    let first = open_lock(&path).unwrap();
    assert!(first.metadata().unwrap().is_file());
    // A lock that another process has open can be opened, and not removed.
    open_lock(&path).unwrap();
    assert!(std::fs::remove_file(&path).is_err());
    drop(first);
    std::fs::remove_file(&path).unwrap();
    let error = open_lock(&folder.join("missing/gpu.lock")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
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
