//! Which accounts, other than Windows and the administrators, can change a file or the contents of
//! a directory of this host, or put another file in the place of a file; and who may use programs.

use std::io;
use std::path::Path;

pub use windows_report::directory_access::{Entry, Sid, Writer, distrust_of, restriction, writers};

/// The accounts that may change a file or a directory of this host. A link is not followed.
///
/// # Errors
/// It does not exist, or this account may not read its access rights.
pub fn directory_writers(path: &Path) -> io::Result<Vec<Writer>> {
    Ok(entry(path)?.writers)
}

/// What is at a path of this host. Other systems have no such access rights.
#[cfg(not(windows))]
pub fn entry(_path: &Path) -> io::Result<Entry> {
    Ok(Entry::default())
}

/// What is at a path of this host.
#[cfg(windows)]
pub fn entry(path: &Path) -> io::Result<Entry> {
    let security = crate::sys::security::of_entry(path)?;
    let kind = path.symlink_metadata()?.file_type();
    let writers = writers(&security.owner, security.acl.as_deref(), kind.is_file())
        .ok_or_else(|| io::Error::other("the access control list is not valid"))?;
    let mut entry = Entry { writers, target: None };
    if kind.is_symlink() {
        let target = path.parent().unwrap_or(path).join(path.read_link()?);
        entry.target = Some(std::path::absolute(target)?);
    }
    Ok(entry)
}

/// Lets every process read and execute a file or the files of a folder, sandboxed processes
/// included, and only administrators change them.
///
/// # Errors
/// The path does not exist, or this account may not change its access rights or owner.
#[cfg(windows)]
pub fn share_programs(path: &Path) -> io::Result<()> {
    crate::sys::security::share_programs(path)
}

/// Why a file must not decide what this process does, and how to fix it: another account than the
/// process's, SYSTEM and Administrators may change or replace it. `NotFound` if there is no file.
#[cfg(windows)]
pub fn distrust(file: &Path) -> io::Result<Option<(String, String)>> {
    // If the file does not exist, the rights of the folders do not matter.
    if matches!(file.try_exists(), Ok(false)) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let own = crate::sys::security::own_account()
        .ok()
        .and_then(|own| windows_report::directory_access::sid(&own));
    distrust_of(&std::path::absolute(file)?, own.as_ref(), entry)
}

/// The accounts, other than the process's, that may change a file or a folder.
///
/// # Errors
/// It does not exist, is a link, or this account may not read its access rights.
#[cfg(windows)]
pub fn other_writers(path: &Path) -> io::Result<Vec<Writer>> {
    let own = crate::sys::security::own_account()
        .ok()
        .and_then(|own| windows_report::directory_access::sid(&own));
    let Entry { writers, target } = entry(path)?;
    if target.is_some() {
        return Err(io::Error::other("it is a link"));
    }
    let writers = writers.into_iter();
    Ok(writers.filter(|writer| Some(&writer.account) != own.as_ref()).collect())
}
