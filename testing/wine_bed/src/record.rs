//! The record of what the bed created, stored in the registry of the prefix.

use anyhow::Result;
use windows_registry::{Key, LOCAL_MACHINE};

use crate::contents::Contents;

const RECORD: &str = r"SOFTWARE\wine_bed";

/// What the bed created, and the registry values that it replaced.
pub(crate) struct Record {
    key: Key,
    contents: Contents,
}

impl Record {
    /// Opens the record, or creates an empty one.
    pub(crate) fn open() -> Result<Record> {
        let key = LOCAL_MACHINE.create(RECORD)?;
        let list = |name: &str| {
            let lines = key.get_string(name).unwrap_or_default();
            lines.lines().map(str::to_owned).collect()
        };
        let contents = Contents {
            devices: list("devices"),
            driver_keys: list("driver_keys"),
            folders: list("folders"),
        };
        Ok(Record { key, contents })
    }

    /// What the bed created.
    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Records `contents` instead of the earlier contents.
    pub(crate) fn replace(&mut self, contents: Contents) -> Result<()> {
        let lists = [
            ("devices", &contents.devices),
            ("driver_keys", &contents.driver_keys),
            ("folders", &contents.folders),
        ];
        for (name, list) in lists {
            self.key.set_string(name, list.join("\n"))?;
        }
        self.contents = contents;
        Ok(())
    }

    /// Adds `more` to the recorded contents.
    pub(crate) fn add(&mut self, more: &Contents) -> Result<()> {
        let union = |old: &[String], new: &[String]| {
            let mut all = old.to_vec();
            all.extend(new.iter().filter(|name| !old.contains(name)).cloned());
            all
        };
        self.replace(Contents {
            devices: union(&self.contents.devices, &more.devices),
            driver_keys: union(&self.contents.driver_keys, &more.driver_keys),
            folders: union(&self.contents.folders, &more.folders),
        })
    }

    /// The key with the original values of the prefix, if a set has saved them.
    pub(crate) fn original_values(&self) -> Option<Key> {
        self.key.open("before").ok()
    }

    /// Creates the key for the original values of the prefix.
    pub(crate) fn create_original_values(&self) -> Result<Key> {
        Ok(self.key.create("before")?)
    }

    /// Deletes the record.
    pub(crate) fn remove(self) -> Result<()> {
        drop(self.key);
        Ok(LOCAL_MACHINE.remove_tree(RECORD)?)
    }
}
