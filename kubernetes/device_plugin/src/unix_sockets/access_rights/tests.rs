//! The tests use plain files and folders. Wine stores only what the mode of Unix can express.

use std::ptr;

use windows::Win32::Security::Authorization::ConvertSecurityDescriptorToStringSecurityDescriptorW;
use windows::core::PWSTR;

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
    set(&path, w!("D:P(A;;FA;;;WD)"), DACL_SECURITY_INFORMATION).unwrap();
    assert_eq!(strangers(&path), ["Everyone (S-1-1-0)"]);
    restrict_to_owner(&path).unwrap();
    assert_eq!(strangers(&path), [""; 0]);
    // The account of the test can still use the file.
    std::fs::write(&path, "x").unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(restrict_to_owner(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn everybody_may_read_shared_programs_and_only_administrators_may_change_them() {
    let folder = tempfile::tempdir().unwrap();
    let (programs, file) = (folder.path().join("programs"), folder.path().join("programs/a.dll"));
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(&file, "x").unwrap();
    for path in [&programs, &file] {
        set(path, w!("D:P(A;OICI;FA;;;WD)"), DACL_SECURITY_INFORMATION).unwrap();
        assert_eq!(strangers(path), ["Everyone (S-1-1-0)"]);
        share_programs(path).unwrap();
        assert_eq!(strangers(path), [""; 0]);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"x");
    std::fs::remove_dir_all(&programs).unwrap();
    assert_eq!(share_programs(&programs).unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// What Windows reads in the text: rights of the sandboxes, which Wine does not store in files.
#[test]
fn sandboxed_processes_may_read_and_execute() {
    let descriptor = Descriptor::new(PROGRAMS).unwrap();
    let mut text = PWSTR(ptr::null_mut());
    // SAFETY: the descriptor is valid, and `text` is writable.
    unsafe {
        ConvertSecurityDescriptorToStringSecurityDescriptorW(
            descriptor.0,
            SDDL_REVISION_1,
            OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
            &raw mut text,
            None,
        )
    }
    .unwrap();
    // SAFETY: Windows returned a null-terminated text.
    let listed = unsafe { text.to_string() }.unwrap();
    // SAFETY: Windows allocated the text with `LocalAlloc`.
    let _ = unsafe { LocalFree(Some(HLOCAL(text.0.cast()))) };
    assert!(listed.starts_with("O:BAD:P"), "{listed}");
    let read = ["0x1200a9", "FRFX"];
    for account in ["WD", "S-1-15-2-1", "S-1-15-2-2"] {
        let alias = if account == "S-1-15-2-1" { "AC" } else { account };
        let entry = |right: &&str| {
            listed.contains(&format!("(A;OICI;{right};;;{account})"))
                || listed.contains(&format!("(A;OICI;{right};;;{alias})"))
        };
        assert!(read.iter().any(entry), "{account}: {listed}");
    }
}
