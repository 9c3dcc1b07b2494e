//! A layer of a Windows image: a tar archive with Windows attributes, compressed.
//!
//! Windows unpacks a layer with hcsshim (`pkg/ociwclayer`). It creates every entry anew,
//! so each folder comes once and before what is in it. The extended headers are those of
//! `BuildKit`'s `util/winlayers`. Equal files and dates give equal bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::{Context, Result, bail};
use flate2::{Compression, GzBuilder};

use super::digest::Digest;
use super::source_date::SourceDate;
use super::{hive, security};

/// The hives that Windows expects in a base layer.
pub(crate) const HIVES: [&str; 5] = ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"];

/// The folder of [`HIVES`] in the layer.
pub(crate) const HIVE_FOLDER: &str = "Files/Windows/System32/config";

/// A regular file: `S_IFREG` and the usual permissions.
const FILE_MODE: u32 = 0o10_0644;

/// Whether other layers lie below this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The only layer. It contains the registry hives.
    Base,
    /// On top of a Windows image. It contains an empty folder for changes to the hives.
    Child,
}

/// A compressed layer.
pub(super) struct Layer {
    pub(super) compressed: Vec<u8>,
    /// The digest of the layer before compression, which the image's configuration lists.
    pub(super) diff_id: Digest,
}

/// Makes a layer of `files`. Their paths are relative to the container's drive, with `/`.
pub(super) fn layer(
    place: Place,
    files: &BTreeMap<String, Vec<u8>>,
    date: SourceDate,
) -> Result<Layer> {
    let archive = archive(place, files, date).context("cannot make a layer")?;
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    gzip.write_all(&archive)?;
    Ok(Layer { compressed: gzip.finish()?, diff_id: Digest::of(&archive) })
}

fn archive(place: Place, files: &BTreeMap<String, Vec<u8>>, date: SourceDate) -> Result<Vec<u8>> {
    let mut content: BTreeMap<String, Vec<u8>> =
        files.iter().map(|(path, bytes)| (format!("Files/{path}"), bytes.clone())).collect();
    let mut folders = BTreeSet::from(["Files".to_owned()]);
    match place {
        Place::Base => content
            .extend(HIVES.iter().map(|name| (format!("{HIVE_FOLDER}/{name}"), hive::empty()))),
        Place::Child => {
            folders.insert("Hives".to_owned());
        }
    }
    for path in content.keys() {
        let separators = path.match_indices('/');
        folders.extend(separators.map(|(index, _)| path[..index].to_owned()));
    }
    reject_duplicates(content.keys().chain(&folders))?;
    let mut tar = tar::Builder::new(Vec::new());
    // A folder's path is the start of the paths in it, so it is sorted before them.
    for folder in &folders {
        append(&mut tar, folder, Kind::Folder, date)?;
    }
    let mut earlier: BTreeMap<&[u8], &str> = BTreeMap::new();
    for (path, bytes) in &content {
        // Windows writes to its hives, so each is a file of its own.
        let is_shared = !path.starts_with(HIVE_FOLDER);
        match earlier.get(&bytes[..]).filter(|_| is_shared) {
            Some(target) => append_link(&mut tar, path, target, date)?,
            None => append(&mut tar, path, Kind::File(bytes), date)?,
        }
        earlier.entry(bytes).or_insert(path);
    }
    Ok(tar.into_inner()?)
}

/// Windows ignores the case of names, and cannot create the same entry twice.
fn reject_duplicates<'a>(paths: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for path in paths {
        if !seen.insert(path.to_lowercase()) {
            bail!("duplicate path `{path}`: Windows ignores case");
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Folder,
    File(&'a [u8]),
}

fn append(
    tar: &mut tar::Builder<Vec<u8>>,
    path: &str,
    kind: Kind<'_>,
    date: SourceDate,
) -> Result<()> {
    // File attributes: FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_ARCHIVE (winnt.h). Modes: the
    // type is in the mode as well.
    let (entry_type, attributes, mode, descriptor, bytes) = match kind {
        Kind::Folder => {
            (tar::EntryType::Directory, "16", 0o40755, security::folder(), [].as_slice())
        }
        Kind::File(bytes) => (tar::EntryType::Regular, "32", FILE_MODE, security::file(), bytes),
    };
    let seconds = date.seconds().to_string();
    let descriptor = security::base64(&descriptor);
    // Without these times, Windows would show the year 1754.
    let extensions = [
        ("LIBARCHIVE.creationtime", seconds.as_str()),
        ("MSWINDOWS.fileattr", attributes),
        ("MSWINDOWS.rawsd", descriptor.as_str()),
        ("atime", seconds.as_str()),
        ("ctime", seconds.as_str()),
    ];
    tar.append_pax_extensions(extensions.map(|(key, value)| (key, value.as_bytes())))?;
    let mut header = tar::Header::new_ustar();
    header.set_path(path)?;
    header.set_entry_type(entry_type);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(date.seconds());
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    tar.append(&header, bytes)?;
    Ok(())
}

/// Appends a hard link to a file that has the same content. Windows takes the attributes
/// of that file.
fn append_link(
    tar: &mut tar::Builder<Vec<u8>>,
    path: &str,
    target: &str,
    date: SourceDate,
) -> Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_path(path)?;
    header.set_link_name(target)?;
    header.set_entry_type(tar::EntryType::Link);
    header.set_mode(FILE_MODE);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(date.seconds());
    header.set_size(0);
    header.set_cksum();
    tar.append(&header, &[][..])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    struct Found {
        path: String,
        header: tar::Header,
        extensions: BTreeMap<String, String>,
        bytes: Vec<u8>,
    }

    #[allow(clippy::unwrap_used, reason = "part of the tests")]
    fn entries(place: Place, names: &[&str]) -> Vec<Found> {
        let files = names.iter().map(|name| ((*name).to_owned(), name.as_bytes().to_vec()));
        let layer = layer(place, &files.collect(), date()).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&layer.compressed[..]).read_to_end(&mut bytes).unwrap();
        assert_eq!(Digest::of(&bytes).to_string(), layer.diff_id.to_string());
        let mut archive = tar::Archive::new(&bytes[..]);
        let entries = archive.entries().unwrap();
        let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let extensions = entry.pax_extensions().unwrap().unwrap().map(|extension| {
                let extension = extension.unwrap();
                (extension.key().unwrap().to_owned(), extension.value().unwrap().to_owned())
            });
            let extensions = extensions.collect();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            Found { path, header: entry.header().clone(), extensions, bytes }
        };
        entries.map(read).collect()
    }

    fn date() -> SourceDate {
        SourceDate::new(Some("1000000000"), None).expect("the date is valid")
    }

    #[test]
    fn a_base_layer_contains_folders_before_hives_and_files() {
        let found = entries(Place::Base, &["a/b.exe", "program.exe"]);
        let paths: Vec<&str> = found.iter().map(|entry| &*entry.path).collect();
        let expected = [
            "Files",
            "Files/Windows",
            "Files/Windows/System32",
            "Files/Windows/System32/config",
            "Files/a",
            "Files/Windows/System32/config/DEFAULT",
            "Files/Windows/System32/config/SAM",
            "Files/Windows/System32/config/SECURITY",
            "Files/Windows/System32/config/SOFTWARE",
            "Files/Windows/System32/config/SYSTEM",
            "Files/a/b.exe",
            "Files/program.exe",
        ];
        assert_eq!(paths, expected);
        assert_eq!(found[5].bytes, hive::empty());
        assert_eq!(found[11].bytes, b"program.exe");
    }

    #[test]
    fn a_child_layer_has_no_hives_but_their_folder() {
        let found = entries(Place::Child, &["program.exe"]);
        let paths: Vec<&str> = found.iter().map(|entry| &*entry.path).collect();
        assert_eq!(paths, ["Files", "Hives", "Files/program.exe"]);
    }

    #[test]
    fn every_entry_has_the_attributes_that_windows_reads() {
        for entry in entries(Place::Base, &["program.exe"]) {
            let is_folder = entry.header.entry_type().is_dir();
            let (attributes, mode) = if is_folder { ("16", 0x4000) } else { ("32", 0x8000) };
            let descriptor = if is_folder { security::folder() } else { security::file() };
            let expected = [
                ("LIBARCHIVE.creationtime", "1000000000"),
                ("MSWINDOWS.fileattr", attributes),
                ("MSWINDOWS.rawsd", &security::base64(&descriptor)),
                ("atime", "1000000000"),
                ("ctime", "1000000000"),
            ];
            let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(entry.extensions, expected.into(), "{}", entry.path);
            assert_eq!(entry.header.mode().unwrap() & 0xf000, mode, "{}", entry.path);
            assert_eq!(entry.header.mtime().unwrap(), 1_000_000_000);
            assert_eq!((entry.header.uid().unwrap(), entry.header.gid().unwrap()), (0, 0));
        }
    }

    #[test]
    fn equal_files_are_hard_links_but_hives_are_not() {
        let files = ["b", "c", "a"].map(|name| (name.to_owned(), b"same".to_vec()));
        let bytes = archive(Place::Base, &files.into(), date()).unwrap();
        let mut archive = tar::Archive::new(&bytes[..]);
        let links = archive.entries().unwrap().filter_map(|entry| {
            let entry = entry.unwrap();
            let path = |path: std::borrow::Cow<'_, std::path::Path>| path.display().to_string();
            Some((path(entry.path().unwrap()), path(entry.link_name().unwrap()?)))
        });
        let expected = [("Files/b", "Files/a"), ("Files/c", "Files/a")];
        let expected = expected.map(|(link, target)| (link.to_owned(), target.to_owned()));
        assert_eq!(links.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_that_differ_only_in_case_are_rejected() {
        let files = ["a.exe", "A.EXE"].map(|name| (name.to_owned(), Vec::new()));
        let error = layer(Place::Base, &files.into(), date()).err().unwrap();
        let expected = "cannot make a layer: duplicate path `Files/a.exe`: Windows ignores case";
        assert_eq!(format!("{error:#}"), expected);
        let files = [("windows/x".to_owned(), Vec::new())];
        assert!(layer(Place::Base, &files.into(), date()).is_err());
    }
}
