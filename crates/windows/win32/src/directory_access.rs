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

/// Creates a folder whose files every process may read and execute, sandboxed processes included,
/// and only administrators may change. It never has other rights.
///
/// # Errors
/// The folder exists, or this account may not create it or give it to Administrators.
#[cfg(windows)]
pub fn create_program_folder(path: &Path) -> io::Result<()> {
    crate::sys::security::create_program_folder(path)
}

/// Creates a file with these rights, and opens it to write.
///
/// # Errors
/// The file exists, or this account may not create it or give it to Administrators.
#[cfg(windows)]
pub fn create_program_file(path: &Path) -> io::Result<std::fs::File> {
    crate::sys::security::create_program_file(path)
}

/// Why a file must not decide what this process does, and how to fix it: another account than the
/// process's, SYSTEM and Administrators may change or replace it. `NotFound` if there is no file.
#[cfg(windows)]
pub fn distrust(file: &Path) -> io::Result<Option<(String, String)>> {
    // If the file does not exist, the rights of the folders do not matter.
    if matches!(file.try_exists(), Ok(false)) {
        return Err(io::ErrorKind::NotFound.into());
    }
    distrust_of(&std::path::absolute(file)?, own_account().as_ref(), entry)
}

/// Why a file in a folder of this program must not decide what this process does: the file or its
/// folder is a link, or another account than the process's, SYSTEM and Administrators may change or
/// replace it. `NotFound` if there is no file.
#[cfg(windows)]
pub fn distrust_in_own_folder(file: &Path) -> io::Result<Option<String>> {
    let file = std::path::absolute(file)?;
    let own = own_account();
    windows_report::directory_access::distrust_in_own_folder(&file, own.as_ref(), entry)
}

/// The accounts, other than the process's, that may change a file or a folder.
///
/// # Errors
/// It does not exist, is a link, or this account may not read its access rights.
#[cfg(windows)]
pub fn other_writers(path: &Path) -> io::Result<Vec<Writer>> {
    let own = own_account();
    let Entry { writers, target } = entry(path)?;
    if target.is_some() {
        return Err(io::Error::other("it is a link"));
    }
    let writers = writers.into_iter();
    Ok(writers.filter(|writer| Some(&writer.account) != own.as_ref()).collect())
}

/// The account of this process, if it is known.
#[cfg(windows)]
fn own_account() -> Option<Sid> {
    let own = crate::sys::security::own_account().ok()?;
    windows_report::directory_access::sid(&own)
}
