//! A layer of an image: a tar archive, compressed, with Windows attributes in Windows images.
//!
//! hcsshim (`pkg/ociwclayer`) unpacks a layer on Windows. It creates every entry anew, so each
//! folder comes once and before what is in it. The extended headers are those of `BuildKit`'s
//! `util/winlayers`. Equal files and times give equal bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::EntryType;

use super::hive;

/// The hives that Windows expects in a base layer, and their folder.
const HIVES: [&str; 5] = ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"];
const HIVE_FOLDER: &str = "Files/Windows/System32/config";

/// The security descriptors of folders and of files (MS-DTYP, section 2.4.6), in base64, and in
/// SDDL as the tests decode them. Users cannot create files, which a program that runs as SYSTEM
/// might load.
///
/// `O:BAG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;0x1200a9;;;BU)`.
const FOLDER_RIGHTS: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBM\
    AAMAAAAAAxgA/wEfAAECAAAAAAAFIAAAACACAAAAAxQA/wEfAAEBAAAAAAAFEgAAAAADGACpABIAAQIAAAAAAAUgAAAA\
    IQIAAA==";
/// `O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)`.
const FILE_RIGHTS: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBM\
    AAMAAAAAABgA/wEfAAECAAAAAAAFIAAAACACAAAAABQA/wEfAAEBAAAAAAAFEgAAAAAAGACpABIAAQIAAAAAAAUgAAAA\
    IQIAAA==";

/// The mode of files, with their type, `S_IFREG`. The mode of folders has `S_IFDIR`.
const FILE: u32 = 0o10_0644;

/// Files by their paths.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// An archive of `files` without attributes of Windows.
pub(super) fn plain(files: &Files, mode: u32, seconds: u64) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = header(EntryType::Regular, mode, seconds);
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, path, &bytes[..])?;
    }
    Ok(tar.into_inner()?)
}

/// A Windows layer of `files`, whose paths are relative to the container's drive. Only the lowest
/// layer of an image has registry hives.
pub(super) fn archive(files: &Files, is_lowest: bool, seconds: u64) -> Result<Vec<u8>> {
    let mut content: Files =
        files.iter().map(|(path, bytes)| (format!("Files/{path}"), bytes.clone())).collect();
    let mut folders = BTreeSet::from(["Files".to_owned()]);
    if is_lowest {
        content.extend(HIVES.map(|name| (format!("{HIVE_FOLDER}/{name}"), hive::empty())));
    } else {
        // This is where changes of the hives would be.
        folders.insert("Hives".to_owned());
    }
    for path in content.keys() {
        folders.extend(path.match_indices('/').map(|(index, _)| path[..index].to_owned()));
    }
    let mut tar = tar::Builder::new(Vec::new());
    // A folder's path is the start of the paths in it, so it is sorted before them.
    for folder in &folders {
        // The drive keeps the rights that it has in the layers below.
        let rights = (is_lowest || folder.contains('/')).then_some(FOLDER_RIGHTS);
        append(&mut tar, folder, EntryType::Directory, rights, &[], seconds)?;
    }
    let mut earlier: BTreeMap<&[u8], &str> = BTreeMap::new();
    for (path, bytes) in &content {
        match earlier.get(&bytes[..]) {
            // A hard link has the attributes of its target. Windows writes to its hives, so each is
            // a file.
            Some(target) if !path.starts_with(HIVE_FOLDER) => {
                let mut header = header(EntryType::Link, FILE, seconds);
                tar.append_link(&mut header, path, target)?;
            }
            _ => append(&mut tar, path, EntryType::Regular, Some(FILE_RIGHTS), bytes, seconds)?,
        }
        earlier.entry(bytes).or_insert(path);
    }
    Ok(tar.into_inner()?)
}

pub(super) fn compress(archive: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    gzip.write_all(archive)?;
    Ok(gzip.finish()?)
}

/// Appends an entry with its attributes.
fn append(
    tar: &mut tar::Builder<Vec<u8>>,
    path: &str,
    kind: EntryType,
    rights: Option<&str>,
    bytes: &[u8],
    seconds: u64,
) -> Result<()> {
    // FILE_ATTRIBUTE_DIRECTORY and FILE_ATTRIBUTE_ARCHIVE (winnt.h).
    let (mode, attributes) = match kind {
        EntryType::Directory => (0o40755, "16"),
        _ => (FILE, "32"),
    };
    let time = &*seconds.to_string();
    // Without the times, Windows shows the year 1754.
    let extensions = [
        ("LIBARCHIVE.creationtime", Some(time)),
        ("MSWINDOWS.fileattr", Some(attributes)),
        ("MSWINDOWS.rawsd", rights),
        ("atime", Some(time)),
        ("ctime", Some(time)),
    ];
    let extensions =
        extensions.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?.as_bytes())));
    tar.append_pax_extensions(extensions)?;
    let mut header = header(kind, mode, seconds);
    header.set_size(bytes.len() as u64);
    Ok(tar.append_data(&mut header, path, bytes)?)
}

fn header(kind: EntryType, mode: u32, seconds: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(seconds);
    header.set_size(0);
    header
}
