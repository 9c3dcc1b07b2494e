//! Which folders decide what a path leads to.
//!
//! A file that is reached over symbolic links, as every file of a Kubernetes
//! config map is, changes when any link on the way does.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Linux's own limit of links in one path (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// The folders to watch for changes of what `path` leads to, and the names in them
/// that matter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// Existing folders that hold the file or a link on the way to it, or, where a
    /// folder is missing, the nearest that exists.
    pub(crate) folders: BTreeSet<PathBuf>,
    /// The names of the file and of those links.
    pub(crate) names: BTreeSet<OsString>,
}

impl Way {
    /// Follows `path`, which is made absolute first.
    pub(crate) fn to(path: &Path) -> std::io::Result<Way> {
        let mut way = Way::default();
        way.follow(&std::path::absolute(path)?);
        Ok(way)
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
                Ok(found) if found.is_symlink() && links < MOST_LINKS => {
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
        // Linux tells a folder's watch that the folder was renamed or removed;
        // Windows tells the watch of the folder that it lies in.
        if let (true, Some(outer), Some(own)) = (cfg!(windows), folder.parent(), folder.file_name())
        {
            self.folders.insert(outer.to_owned());
            self.names.insert(own.to_owned());
        }
    }
}

/// The parts of a path, its root as the first.
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
