//! Reads the owner and the access control list of a file, a directory or a link, and creates files
//! and folders with them.
#![allow(unsafe_code, reason = "calls advapi32.dll")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr;

use windows::Win32::Foundation::{ERROR_SUCCESS, GENERIC_WRITE, HANDLE, HLOCAL, LocalFree};
use windows::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1,
    SE_FILE_OBJECT,
};
use windows::Win32::Security::{
    ACL, DACL_SECURITY_INFORMATION, GetLengthSid, GetTokenInformation, OWNER_SECURITY_INFORMATION,
    PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES, TOKEN_USER, TokenUser,
};
use windows::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_ATTRIBUTE_NORMAL, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
    READ_CONTROL,
};
use windows::core::{HSTRING, PCWSTR, w};

/// The owner and the access control list of an object, as bytes.
pub(crate) struct Security {
    pub(crate) owner: Vec<u8>,
    /// `None` if the object has none, so that everybody has every right.
    pub(crate) acl: Option<Vec<u8>>,
}

/// Full access for SYSTEM and for Administrators, who own it. Everyone else reads and executes,
/// including processes in a sandbox, which belong to ALL APPLICATION PACKAGES (S-1-15-2-1) or ALL
/// RESTRICTED APPLICATION PACKAGES (S-1-15-2-2). Files in a folder inherit this, and nothing is
/// inherited from the folder above.
const PROGRAMS: PCWSTR =
    w!("O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FRFX;;;WD)(A;OICI;FRFX;;;S-1-15-2-1)\
     (A;OICI;FRFX;;;S-1-15-2-2)");

/// A security descriptor that Windows allocated.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Descriptor {
    fn new(text: PCWSTR) -> io::Result<Descriptor> {
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

    /// The security of something new. The result refers to this descriptor.
    fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>().try_into().unwrap_or_default(),
            lpSecurityDescriptor: self.0.0,
            bInheritHandle: false.into(),
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: Windows allocated it with `LocalAlloc`, and nothing refers to it any more.
        let _ = unsafe { LocalFree(Some(HLOCAL(self.0.0))) };
    }
}

/// Opens what is at `path`. No link is followed, and no socket, which is a reparse point that
/// cannot be followed.
fn open(path: &Path, access: u32) -> io::Result<File> {
    OpenOptions::new()
        .access_mode(access)
        .custom_flags((FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS).0)
        .open(path)
}

/// Creates a folder whose files every process may read and execute, and only administrators may
/// change.
pub(crate) fn create_program_folder(path: &Path) -> io::Result<()> {
    create_folder(path, PROGRAMS)
}

/// Creates a file that every process may read and execute, and only administrators may change.
pub(crate) fn create_program_file(path: &Path) -> io::Result<File> {
    create_file(path, PROGRAMS)
}

/// Creates a folder. It never has other rights, so nobody can open it before they are set.
fn create_folder(path: &Path, security: PCWSTR) -> io::Result<()> {
    let descriptor = Descriptor::new(security)?;
    let attributes = descriptor.attributes();
    // SAFETY: the path is null-terminated, and the attributes refer to the descriptor.
    unsafe { CreateDirectoryW(&HSTRING::from(path), Some(&raw const attributes)) }
        .map_err(|_| io::Error::last_os_error())
}

/// Creates a file, as [`create_folder`] does, and opens it to write.
fn create_file(path: &Path, security: PCWSTR) -> io::Result<File> {
    let descriptor = Descriptor::new(security)?;
    let attributes = descriptor.attributes();
    // SAFETY: as above.
    let created = unsafe {
        CreateFileW(
            &HSTRING::from(path),
            GENERIC_WRITE.0,
            FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
            Some(&raw const attributes),
            CREATE_NEW,
            FILE_ATTRIBUTE_NORMAL,
            None,
        )
    };
    let handle = created.map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the handle is open, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle.0) }.into())
}

/// The security of what is at `path`.
pub(crate) fn of_entry(path: &Path) -> io::Result<Security> {
    let file = open(path, READ_CONTROL.0)?;
    let mut descriptor = Descriptor(PSECURITY_DESCRIPTOR::default());
    let mut owner = PSID::default();
    let mut acl = ptr::null_mut::<ACL>();
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
    let size = size_of_val(&buffer).try_into().unwrap_or_default();
    let mut written = 0;
    // `GetCurrentProcessToken` (processthreadsapi.h) has this value. It is not a real handle, so it
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
    use std::io::Write as _;

    use windows::Win32::Security::Authorization::ConvertSecurityDescriptorToStringSecurityDescriptorW;
    use windows::core::PWSTR;

    use super::*;
    use crate::directory_access::directory_writers;

    /// The accounts that may write to a file, except for Windows, the administrators and the owner.
    fn strangers(path: &Path) -> Vec<String> {
        let writers = directory_writers(path).unwrap();
        let strangers = writers.iter().filter(|writer| !writer.is_owner);
        strangers.map(|writer| writer.account.to_string()).collect()
    }

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

    /// The rights that Everyone has to a file or a folder.
    fn rights_of_everyone(path: &Path) -> u32 {
        const EVERYONE: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        let acl = of_entry(path).unwrap().acl.unwrap();
        let entry = acl.windows(EVERYONE.len()).position(|account| account == EVERYONE);
        entry.map_or(0, |at| u32::from_le_bytes(*acl[at - 4..].first_chunk().unwrap()))
    }

    /// Otherwise, Windows would inherit the rights of the folder, and Wine would let everybody read
    /// and nobody execute.
    #[test]
    fn files_and_folders_are_created_with_their_rights() {
        const READ_AND_EXECUTE: u32 = 0x12_00A9;
        let outer = tempfile::tempdir().unwrap();
        let private = outer.path().join("private");
        create_folder(&private, w!("D:P(A;OICI;FA;;;BA)(A;OICI;FA;;;OW)")).unwrap();
        assert_eq!(rights_of_everyone(&private), 0);
        let programs = private.join("programs");
        create_program_folder(&programs).unwrap();
        let files = [programs.join("a.dll"), private.join("b.dll")];
        for file in &files {
            create_program_file(file).unwrap().write_all(b"x").unwrap();
            assert_eq!(std::fs::read(file).unwrap(), b"x");
        }
        for path in [&programs, &files[0], &files[1]] {
            assert_eq!(rights_of_everyone(path), READ_AND_EXECUTE, "{}", path.display());
            assert_eq!(strangers(path), [""; 0]);
        }
    }

    #[test]
    fn nothing_that_exists_is_taken_over() {
        let outer = tempfile::tempdir().unwrap();
        let [folder, file] = ["folder", "file"].map(|name| outer.path().join(name));
        let missing = outer.path().join("missing").join("a.dll");
        create_program_folder(&folder).unwrap();
        create_program_file(&file).unwrap();
        for path in [&folder, &file] {
            let errors = [create_program_folder(path).err(), create_program_file(path).err()];
            for error in errors {
                assert_eq!(error.unwrap().kind(), io::ErrorKind::AlreadyExists);
            }
        }
        let errors = [create_program_folder(&missing).err(), create_program_file(&missing).err()];
        for error in errors {
            assert_eq!(error.unwrap().kind(), io::ErrorKind::NotFound);
        }
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
}
