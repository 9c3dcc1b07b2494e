//! Who may connect to a socket on Windows: whoever may write to its file.
#![allow(unsafe_code, reason = "calls advapi32.dll")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use windows::Win32::Foundation::{HANDLE, HLOCAL, LocalFree};
use windows::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows::Win32::Security::{
    DACL_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR,
    SetKernelObjectSecurity,
};
use windows::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, WRITE_DAC,
};
use windows::core::{PCWSTR, w};

/// Full access for SYSTEM, Administrators and the owner of the file, and nothing inherited from
/// the directory. The owner is the account of this process, or Administrators for one of them, so
/// this is the mode 0600 of Unix.
const OWNER_ONLY: PCWSTR = w!("D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)");

/// Restricts the access to a socket's file as [`OWNER_ONLY`] says.
pub(crate) fn restrict(path: &Path) -> io::Result<()> {
    set(path, OWNER_ONLY)
}

/// Replaces the access control list of a file.
fn set(path: &Path, list: PCWSTR) -> io::Result<()> {
    let file = open(path)?;
    let descriptor = Descriptor::new(list)?;
    let parts = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
    let handle = HANDLE(file.as_raw_handle());
    // SAFETY: `file` keeps the handle open during the call, and the descriptor is valid.
    unsafe { SetKernelObjectSecurity(handle, parts, descriptor.0) }?;
    Ok(())
}

/// Opens the file itself, because a socket is a reparse point that cannot be followed.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .access_mode(WRITE_DAC.0)
        .custom_flags((FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS).0)
        .open(path)
}

/// A security descriptor that Windows allocated.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Descriptor {
    fn new(text: PCWSTR) -> io::Result<Self> {
        let mut descriptor = Descriptor(PSECURITY_DESCRIPTOR::default());
        let result = &raw mut descriptor.0;
        // SAFETY: the text is null-terminated, and `result` refers to a writable variable.
        unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text,
                SDDL_REVISION_1,
                result,
                None,
            )
        }?;
        Ok(descriptor)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: Windows allocated it with `LocalAlloc`, and nothing refers to it any more. Null is
        // ignored.
        let _ = unsafe { LocalFree(Some(HLOCAL(self.0.0))) };
    }
}

#[cfg(test)]
mod tests {
    //! With plain files, because Wine does not support `AF_UNIX`.

    use win32::directory_access::{Ownership, directory_writers};

    use super::*;

    /// The accounts that may write to a file, besides Windows, the administrators and the owner.
    fn strangers(path: &Path) -> Vec<String> {
        let writers = directory_writers(path).unwrap();
        let strangers = writers.iter().filter(|writer| writer.ownership == Ownership::Other);
        strangers.map(|writer| writer.account.to_string()).collect()
    }

    #[test]
    fn nobody_else_may_write_to_a_restricted_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        std::fs::write(&path, "").unwrap();
        set(&path, w!("D:P(A;;FA;;;WD)")).unwrap();
        assert_eq!(strangers(&path), ["Everyone (S-1-1-0)"]);
        restrict(&path).unwrap();
        assert_eq!(strangers(&path), [""; 0]);
        // This account can still use it.
        std::fs::write(&path, "x").unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(restrict(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
