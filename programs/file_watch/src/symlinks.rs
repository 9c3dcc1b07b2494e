//! The folders that decide which files paths refer to.
//!
//! A file reached through symbolic links, as every file of a mounted `ConfigMap` is, changes
//! when any link on the way changes.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Linux's limit of symbolic links in one path (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// The folders to watch for changes of the files that paths refer to, and the relevant
/// names in them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchList {
    /// Existing folders that contain a file or a link on the way to it or, if a folder is
    /// missing, its nearest existing ancestor.
    pub(crate) folders: BTreeSet<PathBuf>,
    /// The names of the files and of those links.
    pub(crate) names: BTreeSet<OsString>,
}

impl WatchList {
    /// Resolves `paths`, which are absolute.
    pub(crate) fn for_files(paths: &[PathBuf]) -> WatchList {
        let mut list = WatchList::default();
        for path in paths {
            list.follow(path);
        }
        list
    }

    fn follow(&mut self, path: &Path) {
        let mut rest: VecDeque<OsString> = parts(path);
        let mut at = PathBuf::new();
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                at.pop();
                continue;
            }
            let folder = at.clone();
            at.push(&part);
            let found = at.symlink_metadata();
            let last = rest.is_empty();
            match found {
                Ok(found) if found.is_symlink() && links < MAX_LINKS => {
                    self.add(&folder, &part);
                    links += 1;
                    let Ok(target) = at.read_link() else { return };
                    // An absolute target replaces the whole path, as `push` does.
                    at = folder;
                    for (n, part) in parts(&target).into_iter().enumerate() {
                        rest.insert(n, part);
                    }
                    if target.is_absolute() {
                        at = PathBuf::new();
                    }
                }
                Ok(_) if !last => {}
                _ => return self.add(&folder, &part),
            }
        }
    }

    fn add(&mut self, folder: &Path, name: &OsString) {
        self.folders.insert(folder.to_owned());
        self.names.insert(name.clone());
        // Linux reports the renaming or removal of a folder to the watch of the folder;
        // Windows reports it to the watch of its parent.
        if let (true, Some(outer), Some(own)) = (cfg!(windows), folder.parent(), folder.file_name())
        {
            self.folders.insert(outer.to_owned());
            self.names.insert(own.to_owned());
        }
    }
}

/// The components of a path; the root is the first.
fn parts(path: &Path) -> VecDeque<OsString> {
    let mut root = PathBuf::new();
    let mut parts = VecDeque::new();
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => root.push(component),
            Component::CurDir => {}
            Component::ParentDir | Component::Normal(_) => {
                parts.push_back(component.as_os_str().to_owned());
            }
        }
    }
    if !root.as_os_str().is_empty() {
        parts.push_front(root.into_os_string());
    }
    parts
}
