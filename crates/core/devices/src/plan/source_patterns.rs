//! The files of a driver store folder that match a pattern of the configuration.

use std::collections::BTreeMap;
use std::fmt;

use host::fold_case;
use host::name_matches;
use host::{StoreFiles, StorePath, StorePattern};

use crate::{Device, StoreFolder};

/// The disk of a live host. An inventory lists its files itself.
#[derive(Clone, Copy)]
pub struct Disk<'a> {
    /// Whether a file exists.
    pub exists: &'a dyn Fn(&str) -> bool,
    /// The names of the folders in a folder. Links are not folders.
    pub folders: &'a dyn Fn(&str) -> Vec<String>,
}

/// Why a pattern names no file to mount. Exactly one file must match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoSingleMatch {
    /// No file matches.
    None,
    /// These files match.
    Several(Vec<StorePath>),
}

impl fmt::Display for NoSingleMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSingleMatch::None => f.write_str("matches no file"),
            NoSingleMatch::Several(files) => {
                let files: Vec<&str> = files.iter().map(StorePath::as_str).collect();
                write!(f, "matches several files: {}", files.join(", "))
            }
        }
    }
}

/// The only file in `folder`, the driver store folder of `device`, that matches.
pub(crate) fn only_match(
    pattern: &StorePattern,
    folder: &StoreFolder,
    device: &Device,
    disk: Disk<'_>,
) -> Result<StorePath, NoSingleMatch> {
    let mut files = matching(pattern, folder, device, disk);
    match files.len() {
        0 => Err(NoSingleMatch::None),
        1 => Ok(files.remove(0)),
        _ => Err(NoSingleMatch::Several(files)),
    }
}

/// The files that match, sorted, each once. A path that would lead out of the folder is none.
fn matching(
    pattern: &StorePattern,
    folder: &StoreFolder,
    device: &Device,
    disk: Disk<'_>,
) -> Vec<StorePath> {
    let paths = match &folder.files {
        StoreFiles::Listed(files) => files.iter().cloned().collect(),
        StoreFiles::EveryNamed => in_known_folders(pattern, device),
        StoreFiles::OnDisk => on_disk(pattern, folder, disk),
    };
    let paths = paths.iter().filter_map(|path| path.parse::<StorePath>().ok());
    let matching = paths.filter(|path| pattern.matches(path));
    let by_name: BTreeMap<String, StorePath> =
        matching.map(|path| (fold_case(path.as_str()), path)).collect();
    by_name.into_values().collect()
}

/// The file in each folder that the driver names. An inventory without files does not say which
/// other folders exist.
fn in_known_folders(pattern: &StorePattern, device: &Device) -> Vec<String> {
    let (_, file) = pattern.folders_and_file();
    let named = device.runtime_files.system32.iter().chain(&device.runtime_files.wow64);
    let folders = named.filter_map(|file| file.source.as_str().rsplit_once('\\'));
    folders.map(|(folder, _)| format!("{folder}\\{file}")).collect()
}

fn on_disk(pattern: &StorePattern, folder: &StoreFolder, disk: Disk<'_>) -> Vec<String> {
    let root = folder.path.trim_end_matches('\\');
    let (folders, file) = pattern.folders_and_file();
    // Each ends with a separator, unless it is empty.
    let mut found = vec![String::new()];
    for pattern in folders {
        let mut deeper = Vec::new();
        for path in &found {
            let names = (disk.folders)(format!("{root}\\{path}").trim_end_matches('\\'));
            let matching = names.iter().filter(|name| name_matches(pattern, name));
            deeper.extend(matching.map(|name| format!("{path}{name}\\")));
        }
        found = deeper;
    }
    let files = found.into_iter().map(|path| format!("{path}{file}"));
    files.filter(|path| (disk.exists)(&format!("{root}\\{path}"))).collect()
}
