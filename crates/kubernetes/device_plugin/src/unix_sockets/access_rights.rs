//! Gives a file or a folder on Windows to its owner, with an access control list that inherits
//! nothing from the folder above.
#![allow(unsafe_code, reason = "calls advapi32.dll")]

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Component, Path, Prefix};

use windows::Win32::Foundation::{GENERIC_WRITE, HANDLE, HLOCAL, LocalFree};
use windows::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1,
    SE_FILE_OBJECT,
};
use windows::Win32::Security::{
    CheckTokenMembership, DACL_SECURITY_INFORMATION, EqualSid, GetTokenInformation, IsWellKnownSid,
    OWNER_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID,
    SECURITY_ATTRIBUTES, SetKernelObjectSecurity, TOKEN_USER, TokenUser, WELL_KNOWN_SID_TYPE,
    WinBuiltinAdministratorsSid, WinLocalSystemSid,
};
use windows::Win32::Storage::FileSystem::{
    CreateDirectoryW, CreateFileW, FILE_ATTRIBUTE_NORMAL, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_READ, FILE_SHARE_WRITE, OPEN_ALWAYS, READ_CONTROL,
    WRITE_DAC,
};
use windows::core::{BOOL, PCWSTR, w};

use crate::unix_sockets::socket_file::owned_by_another;

/// Full access for SYSTEM, Administrators and the owner of the file. The owner is the account of
/// this process, or Administrators for one of them, so this is the mode 0600 of Unix.
const OWNER_ONLY: PCWSTR = w!("D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)");

/// Creates a folder that only its owner and the administrators may use. It never has other rights,
/// so nobody can open it before they are set.
///
/// # Errors
/// The folder exists, or any error of the operating system.
pub(crate) fn create_folder_for_owner(path: &Path) -> io::Result<()> {
    let path = wide(path)?;
    let descriptor = Descriptor::new(OWNER_ONLY)?;
    let attributes = descriptor.attributes();
    // SAFETY: the path is null-terminated, and the attributes refer to the descriptor.
    unsafe { CreateDirectoryW(PCWSTR(path.as_ptr()), Some(&raw const attributes)) }
        .map_err(|_| io::Error::last_os_error())
}

/// Opens a file to lock it. If it does not exist, it is created for its owner and the
/// administrators. It is not shared for deletion: while it is open, nobody can remove or rename it
/// or its folder.
///
/// # Errors
/// Any error of the operating system.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let path = wide(path)?;
    let descriptor = Descriptor::new(OWNER_ONLY)?;
    let attributes = descriptor.attributes();
    // SAFETY: the path is null-terminated, and the attributes refer to the descriptor.
    let opened = unsafe {
        CreateFileW(
            PCWSTR(path.as_ptr()),
            GENERIC_WRITE.0,
            FILE_SHARE_READ | FILE_SHARE_WRITE,
            Some(&raw const attributes),
            OPEN_ALWAYS,
            FILE_ATTRIBUTE_NORMAL,
            None,
        )
    };
    let handle = opened.map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the handle is open, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle.0) }.into())
}

/// A path for Windows. The prefix removes the limit of 260 characters.
fn wide(path: &Path) -> io::Result<Vec<u16>> {
    let path = std::path::absolute(path)?;
    let is_on_drive = path.components().next().is_some_and(|first| {
        matches!(first, Component::Prefix(prefix) if matches!(prefix.kind(), Prefix::Disk(_)))
    });
    let mut text = OsString::from(if is_on_drive { r"\\?\" } else { "" });
    text.push(path);
    Ok(text.encode_wide().chain([0]).collect())
}

/// Gives a file or a folder to its owner and to the administrators, and to nobody else.
///
/// # Errors
/// Neither SYSTEM nor an account of this process owns it, or any error of the operating system.
pub(crate) fn restrict_to_owner(path: &Path) -> io::Result<()> {
    let owner = Owner::of(path)?;
    if !owner.is_well_known(WinLocalSystemSid)
        && !owner.is_own_group()?
        && !owner.is_own_account()?
    {
        return Err(owned_by_another(path));
    }
    set(path, OWNER_ONLY)
}

/// Whether SYSTEM, Administrators or the account of this process owns a file or a folder, so that
/// no ordinary user can have put it there.
///
/// # Errors
/// Any error of the operating system.
pub fn is_trusted(path: &Path) -> io::Result<bool> {
    let owner = Owner::of(path)?;
    let administrators = [WinLocalSystemSid, WinBuiltinAdministratorsSid];
    let is_administrator = administrators.into_iter().any(|account| owner.is_well_known(account));
    Ok(is_administrator || owner.is_own_account()?)
}

/// The owner of a file or a folder.
struct Owner {
    account: PSID,
    /// Contains `account`.
    _descriptor: Descriptor,
}

impl Owner {
    fn of(path: &Path) -> io::Result<Owner> {
        let file = open(path, READ_CONTROL.0)?;
        let mut descriptor = Descriptor(PSECURITY_DESCRIPTOR::default());
        let mut account = PSID::default();
        let handle = HANDLE(file.as_raw_handle());
        let found = Some(&raw mut account);
        let part = OWNER_SECURITY_INFORMATION;
        let all = Some(&raw mut descriptor.0);
        // SAFETY: `file` keeps the handle open during the call, which writes only to the two
        // variables.
        unsafe { GetSecurityInfo(handle, SE_FILE_OBJECT, part, found, None, None, None, all) }
            .ok()?;
        Ok(Owner { account, _descriptor: descriptor })
    }

    fn is_well_known(&self, account: WELL_KNOWN_SID_TYPE) -> bool {
        // SAFETY: the descriptor contains the account.
        unsafe { IsWellKnownSid(self.account, account) }.as_bool()
    }

    /// Whether it is a group of this process, such as Administrators.
    fn is_own_group(&self) -> io::Result<bool> {
        let mut is_member = BOOL::default();
        // SAFETY: the descriptor contains the account, and the result is writable.
        unsafe { CheckTokenMembership(None, self.account, &raw mut is_member) }?;
        Ok(is_member.as_bool())
    }

    /// Whether this process runs as the account. Wine's `CheckTokenMembership` knows only the
    /// groups.
    fn is_own_account(&self) -> io::Result<bool> {
        is_own_account(self.account)
    }
}

/// Whether this process runs as the account.
fn is_own_account(account: PSID) -> io::Result<bool> {
    // The buffer is aligned as the structure; the SID is behind it and has at most 68 bytes
    // (`SECURITY_MAX_SID_SIZE`).
    let mut buffer = [0_u64; 16];
    let size = size_of_val(&buffer).try_into().unwrap_or_default();
    let mut written = 0;
    // `GetCurrentProcessToken` (processthreadsapi.h) has this value. It is not a real handle, so it
    // is not closed.
    let token = HANDLE(std::ptr::without_provenance_mut(usize::MAX - 3));
    let user = Some(buffer.as_mut_ptr().cast());
    // SAFETY: the buffer is writable and has this size.
    unsafe { GetTokenInformation(token, TokenUser, user, size, &raw mut written) }?;
    // SAFETY: Windows wrote this structure to the start of the buffer.
    let user = unsafe { &*buffer.as_ptr().cast::<TOKEN_USER>() }.User.Sid;
    // SAFETY: both are valid SIDs. The error only says that they differ.
    Ok(unsafe { EqualSid(user, account) }.is_ok())
}

/// Replaces the access control list of a file or a folder.
fn set(path: &Path, text: PCWSTR) -> io::Result<()> {
    let file = open(path, WRITE_DAC.0)?;
    let descriptor = Descriptor::new(text)?;
    let parts = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
    let handle = HANDLE(file.as_raw_handle());
    // SAFETY: `file` keeps the handle open during the call, and the descriptor is valid.
    unsafe { SetKernelObjectSecurity(handle, parts, descriptor.0) }?;
    Ok(())
}

/// Opens the file or the folder itself and follows no link. A socket is a reparse point, which
/// cannot be followed.
fn open(path: &Path, access: u32) -> io::Result<File> {
    OpenOptions::new()
        .access_mode(access)
        .custom_flags((FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS).0)
        .open(path)
}

/// A security descriptor that Windows allocated. `win32` has the same one, but this package, which other
/// plugins may use, depends on none of the others.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Descriptor {
    fn new(text: PCWSTR) -> io::Result<Descriptor> {
        let mut descriptor = Descriptor(PSECURITY_DESCRIPTOR::default());
        let revision = SDDL_REVISION_1;
        let result = &raw mut descriptor.0;
        // SAFETY: the text is null-terminated, and `result` refers to a writable variable.
        unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(text, revision, result, None)
        }?;
        Ok(descriptor)
    }

    /// The rights of something new. The result refers to this descriptor.
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
        // SAFETY: Windows allocated it with `LocalAlloc`, and nothing refers to it any more. Null
        // is ignored.
        let _ = unsafe { LocalFree(Some(HLOCAL(self.0.0))) };
    }
}

#[cfg(test)]
mod tests;
