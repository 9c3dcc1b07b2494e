//! The inventories of the repository, and inventories made up for one test.

use std::path::{Path, PathBuf};

/// The workspace's `fixtures` folder.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures")
}

/// One inventory of the repository.
pub(crate) fn inventory(name: &str) -> PathBuf {
    folder().join("inventories").join(name)
}

/// Every inventory of the repository, by name.
pub(crate) fn inventories() -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder().join("inventories")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "yaml" || e == "json"));
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    paths.into_iter().map(|path| (name(&path), path)).collect()
}

/// An inventory made up for one test, deleted when dropped.
pub(crate) struct MadeUp(tempfile::TempDir);

impl MadeUp {
    /// `adapters` is the inventory's list of adapters, in YAML.
    pub(crate) fn new(adapters: &str) -> MadeUp {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("schema: directx-inventory/v1\nadapters:{adapters}\n");
        std::fs::write(folder.path().join("host.yaml"), text).unwrap();
        MadeUp(folder)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("host.yaml")
    }
}
