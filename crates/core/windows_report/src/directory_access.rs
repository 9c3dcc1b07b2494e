//! Which accounts, other than Windows and the administrators, can change a file or the contents of
//! a directory, or put another file in the place of a file.
//!
//! Parses the owner and the access control list (DACL), as bytes, and returns the accounts with the
//! rights that matter for a directory with sockets or a configuration file. The structures are
//! those of winnt.h, described in Microsoft's \[MS-DTYP\], sections 2.4.2 to 2.4.5.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file, a folder, or a link to one.
#[derive(Clone, Default, Debug)]
pub struct Entry {
    /// The accounts that may change it.
    pub writers: Vec<Writer>,
    /// The absolute path that a link leads to.
    pub target: Option<PathBuf>,
}

/// An account that may change a directory, and what it may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writer {
    pub account: Sid,
    /// What it may do, for a sentence with *may*; never empty.
    pub rights: Vec<&'static str>,
    /// Whether it owns the directory, so that it may always change the access rights.
    pub is_owner: bool,
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} may ", self.account)?;
        match self.rights.as_slice() {
            [rest @ .., last] if !rest.is_empty() => write!(f, "{} and {last}", rest.join(", ")),
            few => f.write_str(&few.concat()),
        }
    }
}

/// The commands that leave a file or a folder to SYSTEM (S-1-5-18) and Administrators
/// (S-1-5-32-544). The quotes are for PowerShell, where parentheses have a meaning.
#[must_use]
pub fn restriction(path: &str, is_folder: bool, writers: &[Writer]) -> String {
    let inherited = if is_folder { "(OI)(CI)" } else { "" };
    let sids: Vec<String> =
        writers.iter().map(|writer| format!(" *{}", writer.account.as_str())).collect();
    let sids = sids.concat();
    let owner = if writers.iter().any(|writer| writer.is_owner) {
        format!(", then `icacls \"{path}\" /setowner *S-1-5-32-544`")
    } else {
        String::new()
    };
    format!(
        "`icacls \"{path}\" /inheritance:r /grant:r \"*S-1-5-18:{inherited}F\" \
         \"*S-1-5-32-544:{inherited}F\" /remove:g{sids}`{owner}"
    )
}

/// A security identifier, as in `S-1-5-18`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Sid(String);

impl Sid {
    /// The identifier as `icacls` accepts it after an asterisk.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_trusted(&self) -> bool {
        TRUSTED.contains(&self.0.as_str())
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match WELL_KNOWN.iter().find(|(sid, _)| *sid == self.0) {
            Some((_, name)) => write!(f, "{name} ({})", self.0),
            None => f.write_str(&self.0),
        }
    }
}

const EVERYONE: &str = "S-1-1-0";

/// Accounts that control the host anyway: SYSTEM, Administrators and `TrustedInstaller`. OWNER
/// RIGHTS and CREATOR OWNER are the owner, which is checked itself.
const TRUSTED: [&str; 5] = [
    "S-1-5-18",
    "S-1-5-32-544",
    "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464",
    "S-1-3-4",
    "S-1-3-0",
];

/// The names of groups that Windows grants access by default ("Well-known SIDs", Microsoft Learn).
const WELL_KNOWN: [(&str, &str); 6] = [
    (EVERYONE, "Everyone"),
    ("S-1-5-7", "Anonymous"),
    ("S-1-5-11", "Authenticated Users"),
    ("S-1-5-4", "Interactive"),
    ("S-1-5-32-545", "Users"),
    ("S-1-5-32-547", "Power Users"),
];

/// The access rights of a file or directory that matter: their bits, and what they allow (winnt.h).
/// `GENERIC_WRITE` and `GENERIC_ALL` contain the first, `GENERIC_ALL` all of them.
const RIGHTS: [(u32, &str); 4] = [
    (FILE_ADD_FILE | GENERIC_WRITE | GENERIC_ALL, CREATE_FILES),
    (FILE_DELETE_CHILD | GENERIC_ALL, "delete files of others"),
    // Another file or folder may take its name.
    (DELETE | GENERIC_ALL, "delete it"),
    (WRITE_DAC | WRITE_OWNER | GENERIC_ALL, CHANGE_RIGHTS),
];

const CREATE_FILES: &str = "create files";
const CHANGE_RIGHTS: &str = "change the access rights";

const FILE_ADD_FILE: u32 = 0x2;
const FILE_APPEND_DATA: u32 = 0x4;
const FILE_DELETE_CHILD: u32 = 0x40;
const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
const DELETE: u32 = 0x1_0000;
const WRITE_DAC: u32 = 0x4_0000;
const WRITE_OWNER: u32 = 0x8_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;

/// An entry that is only for the files in the directory (winnt.h).
const INHERIT_ONLY_ACE: u8 = 0x8;

const ACCESS_ALLOWED_ACE_TYPE: u8 = 0;
const ACCESS_DENIED_ACE_TYPE: u8 = 1;

/// Allows under a condition, which is ignored here: it may be true.
const ACCESS_ALLOWED_CALLBACK_ACE_TYPE: u8 = 9;

/// The accounts that may change a file, or a directory or link, with this owner and access control
/// list, in the order of the list. No list means that everybody may do everything.
/// `None` if the bytes are not a security identifier or an access control list.
#[must_use]
pub fn writers(owner: &[u8], acl: Option<&[u8]>, is_file: bool) -> Option<Vec<Writer>> {
    let owner = sid(owner)?;
    let granted = match acl {
        Some(acl) => granted(acl)?,
        None => vec![(Sid(EVERYONE.to_owned()), GENERIC_ALL)],
    };
    // With the right to change its attributes, an empty folder or a link can be made to lead
    // elsewhere (MS-FSA 2.1.5.10.37).
    let also_writes = if is_file { FILE_APPEND_DATA } else { FILE_WRITE_ATTRIBUTES };
    let mut writers: Vec<Writer> = Vec::new();
    if !owner.is_trusted() {
        let rights = vec![CHANGE_RIGHTS];
        writers.push(Writer { account: owner, rights, is_owner: true });
    }
    for (account, mask) in granted.into_iter().filter(|(account, _)| !account.is_trusted()) {
        let mask = if mask & also_writes == 0 { mask } else { mask | FILE_ADD_FILE };
        let rights = RIGHTS.iter().filter(|(bits, _)| mask & bits != 0).map(|&(_, right)| right);
        let known = writers.iter_mut().find(|writer| writer.account == account);
        let Some(writer) = known else {
            let rights: Vec<&str> = rights.collect();
            if !rights.is_empty() {
                writers.push(Writer { account, rights, is_owner: false });
            }
            continue;
        };
        for right in rights {
            if !writer.rights.contains(&right) {
                writer.rights.push(right);
            }
        }
    }
    Some(writers)
}

/// What each entry grants for the directory itself. An entry that denies rights removes them from
/// later entries of the same account, and of all accounts if it is for everyone; other memberships
/// are not known here.
fn granted(acl: &[u8]) -> Option<Vec<(Sid, u32)>> {
    let &[_revision, _, _, _, low, high, _, _, ref entries @ ..] = acl else { return None };
    let mut rest = entries;
    let mut granted = Vec::new();
    let mut denied: Vec<(Sid, u32)> = Vec::new();
    for _ in 0..u16::from_le_bytes([low, high]) {
        let &[kind, flags, low, high, ..] = rest else { return None };
        let size = usize::from(u16::from_le_bytes([low, high]));
        let (entry, after) = rest.split_at_checked(size).filter(|(entry, _)| entry.len() >= 4)?;
        rest = after;
        // Audits, labels, and rights to objects of a directory service have other kinds.
        let is_denial = kind == ACCESS_DENIED_ACE_TYPE;
        let is_right = matches!(kind, ACCESS_ALLOWED_ACE_TYPE | ACCESS_ALLOWED_CALLBACK_ACE_TYPE);
        if flags & INHERIT_ONLY_ACE != 0 || !(is_denial || is_right) {
            continue;
        }
        let mask = u32::from_le_bytes(*entry.get(4..)?.first_chunk()?);
        let account = sid(entry.get(8..)?)?;
        if is_denial {
            denied.push((account, mask));
            continue;
        }
        let allowed = denied
            .iter()
            .filter(|denial| denial.0 == account || denial.0.0 == EVERYONE)
            .fold(mask, |mask, denial| mask & !denial.1);
        granted.push((account, allowed));
    }
    Some(granted)
}

/// The text of a `SID`. Bytes after it are ignored.
#[must_use]
pub fn sid(bytes: &[u8]) -> Option<Sid> {
    let &[revision, count, ref rest @ ..] = bytes else { return None };
    let (authority, parts) = rest.split_first_chunk::<6>()?;
    let authority = authority.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let (parts, _) = parts.get(..4 * usize::from(count))?.as_chunks();
    let mut numbers = vec![format!("S-{revision}-{authority}")];
    numbers.extend(parts.iter().map(|part| u32::from_le_bytes(*part).to_string()));
    Some(Sid(numbers.join("-")))
}

/// Why a file must not decide what this process does, and how to fix it: another account than
/// `own`, SYSTEM and Administrators may change or replace it. Checks the folders above the file,
/// the links on the way to it, and what they lead to; `entry` returns what is at a path.
///
/// The path is absolute, without `..`.
///
/// # Errors
/// `NotFound` if only the file does not exist, and its folder is trusted.
pub fn distrust_of(
    file: &Path,
    own: Option<&Sid>,
    entry: impl Fn(&Path) -> io::Result<Entry>,
) -> io::Result<Option<(String, String)>> {
    let mut path = file.to_owned();
    // Windows follows at most 63 links ("Reparse Points", Microsoft Learn).
    'links: for _ in 0..64 {
        let ancestors: Vec<&Path> = path.ancestors().collect();
        // The check starts at the root, because a link decides where everything below it is.
        for (level, &ancestor) in ancestors.iter().enumerate().rev() {
            let found = match entry(ancestor) {
                Err(error) if level > 0 || error.kind() != io::ErrorKind::NotFound => {
                    return Err(unknown_writers(ancestor, &error));
                }
                found => found?,
            };
            if let Some(distrust) = distrust_of_entry(ancestor, level, own, &found) {
                return Ok(Some(distrust));
            }
            if let Some(mut target) = found.target {
                target.extend(ancestors[..level].iter().rev().filter_map(|path| path.file_name()));
                path = target;
                continue 'links;
            }
        }
        return Ok(None);
    }
    Err(io::Error::other(format!("`{}` leads through too many links", file.display())))
}

/// Why a file must not decide what this process does, if it is in a folder of this program: the
/// file or the folder is a link, or another account than `own`, SYSTEM and Administrators may
/// change or replace it.
///
/// What is above the folder is not checked. It belongs to other programs, which control this
/// program anyway: on images of Azure, every account may rename `C:\var`, with the kubelet's files.
///
/// # Errors
/// `NotFound` if the file does not exist.
pub fn distrust_in_own_folder(
    file: &Path,
    own: Option<&Sid>,
    entry: impl Fn(&Path) -> io::Result<Entry>,
) -> io::Result<Option<String>> {
    // The folder comes last: if the file does not exist, its rights do not matter. Both may be
    // removed in between.
    for (level, path) in file.ancestors().take(2).enumerate() {
        let found = match entry(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unknown_writers(path, &error));
            }
            found => found?,
        };
        if found.target.is_some() {
            return Ok(Some(format!("`{}` is a link", path.display())));
        }
        if let Some((reason, _)) = distrust_of_entry(path, level, own, &found) {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

fn unknown_writers(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("cannot find out who may change `{}`: {error}", path.display()))
}

/// The reason and the fix, if a file this many levels below an entry must not be trusted.
fn distrust_of_entry(
    path: &Path,
    level: usize,
    own: Option<&Sid>,
    entry: &Entry,
) -> Option<(String, String)> {
    let is_near = level < 2 || entry.target.is_some();
    let mut writers = entry.writers.clone();
    // Above its folder, new files replace nothing, except a link.
    writers.retain(|writer| {
        Some(&writer.account) != own
            && (is_near || writer.rights.iter().any(|right| *right != CREATE_FILES))
    });
    let who: Vec<String> = writers.iter().map(|writer| writer.account.to_string()).collect();
    let path = path.display().to_string();
    let fix = if level < 2 && entry.target.is_none() {
        format!("run {}", restriction(&path, level > 0, &writers))
    } else {
        // `icacls` follows links, and other contents of a folder may need these rights.
        "move the file to a folder that only administrators may change".to_owned()
    };
    (!who.is_empty()).then(|| (format!("{} may change `{path}`", who.join(", ")), fix))
}

#[cfg(test)]
mod tests;
