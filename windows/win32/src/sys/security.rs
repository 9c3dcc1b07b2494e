//! Reads the owner and the access control list of a file, a directory or a link.
#![allow(unsafe_code, reason = "calls advapi32.dll")]

use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::ptr;

use windows::Win32::Foundation::{ERROR_SUCCESS, HANDLE, HLOCAL, LocalFree};
use windows::Win32::Security::Authorization::{GetSecurityInfo, SE_FILE_OBJECT};
use windows::Win32::Security::{
    ACL, DACL_SECURITY_INFORMATION, GetLengthSid, GetTokenInformation, OWNER_SECURITY_INFORMATION,
    PSECURITY_DESCRIPTOR, PSID, TOKEN_USER, TokenUser,
};
use windows::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, READ_CONTROL,
};

/// The owner and the access control list of an object, as bytes.
pub(crate) struct Security {
    pub(crate) owner: Vec<u8>,
    /// `None` if the object has none, so that everybody has every right.
    pub(crate) acl: Option<Vec<u8>>,
}

/// A security descriptor that Windows allocated.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: Windows allocated it with `LocalAlloc`, and nothing refers to it any more.
        let _ = unsafe { LocalFree(Some(HLOCAL(self.0.0))) };
    }
}

/// The security of what is at `path`. No link is followed, and no socket, which is a reparse point
/// that cannot be followed.
pub(crate) fn of_entry(path: &Path) -> io::Result<Security> {
    let file = OpenOptions::new()
        .access_mode(READ_CONTROL.0)
        .custom_flags((FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS).0)
        .open(path)?;
    let mut descriptor = Descriptor(PSECURITY_DESCRIPTOR::default());
    let (mut owner, mut acl) = (PSID::default(), ptr::null_mut::<ACL>());
    // SAFETY: `file` keeps the handle open during the call, and every pointer refers to a writable
    // variable.
    let result = unsafe {
        GetSecurityInfo(
            HANDLE(file.as_raw_handle()),
            SE_FILE_OBJECT,
            OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
            Some(&raw mut owner),
            None,
            Some(&raw mut acl),
            None,
            Some(&raw mut descriptor.0),
        )
    };
    if result != ERROR_SUCCESS {
        return Err(io::Error::from_raw_os_error(result.0.cast_signed()));
    }
    if owner.is_invalid() {
        return Err(io::Error::other("it has no owner"));
    }
    // SAFETY: Windows set `owner` to a valid SID in the descriptor, which is still there.
    let owner = unsafe { bytes_of(owner) };
    // SAFETY: Windows set `acl` to null or to an ACL in the descriptor.
    let acl = unsafe { acl.as_ref() }.map(|header| {
        let length = usize::from(header.AclSize);
        // SAFETY: the ACL has this length, header included, and lives as long as `descriptor`.
        unsafe { std::slice::from_raw_parts(acl.cast::<u8>(), length) }.to_vec()
    });
    Ok(Security { owner, acl })
}

/// The security identifier of the account of this process.
pub(crate) fn own_account() -> io::Result<Vec<u8>> {
    // The buffer is aligned as the structure; the SID is behind it and has at most 68 bytes
    // (`SECURITY_MAX_SID_SIZE`).
    let mut buffer = [0_u64; 16];
    let (size, mut written) = (size_of_val(&buffer).try_into().unwrap_or_default(), 0);
    // The value is that of `GetCurrentProcessToken` (processthreadsapi.h): not a real handle, so it
    // is not closed.
    let token = HANDLE(ptr::without_provenance_mut(usize::MAX - 3));
    // SAFETY: the buffer is writable and has this size.
    unsafe {
        GetTokenInformation(
            token,
            TokenUser,
            Some(buffer.as_mut_ptr().cast()),
            size,
            &raw mut written,
        )?;
    }
    // SAFETY: Windows wrote this structure to the start of the buffer.
    let user = unsafe { &*buffer.as_ptr().cast::<TOKEN_USER>() }.User.Sid;
    // SAFETY: Windows set `user` to a valid SID in the buffer.
    Ok(unsafe { bytes_of(user) })
}

/// # Safety
/// `sid` must be a valid security identifier.
unsafe fn bytes_of(sid: PSID) -> Vec<u8> {
    // SAFETY: the caller guarantees the identifier.
    let length = unsafe { GetLengthSid(sid) } as usize;
    // SAFETY: it has this length.
    unsafe { std::slice::from_raw_parts(sid.0.cast::<u8>(), length) }.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_an_account() {
        assert_eq!(own_account().unwrap()[0], 1, "the revision of every SID");
    }

    #[test]
    fn a_folder_has_an_owner_and_a_missing_one_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let security = of_entry(folder.path()).unwrap();
        assert_eq!(security.owner[0], 1, "the revision of every SID");
        assert!(security.acl.is_some());
        let missing = of_entry(&folder.path().join("missing")).err().unwrap();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound, "{missing}");
    }
}
