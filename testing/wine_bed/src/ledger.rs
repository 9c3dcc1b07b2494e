//! What the bed has made, written down in the registry of the prefix itself.

use anyhow::Result;
use windows_registry::{Key, LOCAL_MACHINE};

use crate::bed::Made;

const LEDGER: &str = r"SOFTWARE\wine_bed";

/// The list of what was made, and the values that were there before.
pub(crate) struct Ledger {
    key: Key,
    made: Made,
}

impl Ledger {
    pub(crate) fn open() -> Result<Ledger> {
        let key = LOCAL_MACHINE.create(LEDGER)?;
        let list = |name: &str| {
            let lines = key.get_string(name).unwrap_or_default();
            lines.lines().map(str::to_owned).collect()
        };
        let made = Made {
            devices: list("devices"),
            driver_keys: list("driver_keys"),
            folders: list("folders"),
        };
        Ok(Ledger { key, made })
    }

    pub(crate) fn made(&self) -> &Made {
        &self.made
    }

    pub(crate) fn replace(&mut self, made: Made) -> Result<()> {
        let lists = [
            ("devices", &made.devices),
            ("driver_keys", &made.driver_keys),
            ("folders", &made.folders),
        ];
        for (name, list) in lists {
            self.key.set_string(name, list.join("\n"))?;
        }
        self.made = made;
        Ok(())
    }

    pub(crate) fn add(&mut self, more: &Made) -> Result<()> {
        let union = |old: &[String], new: &[String]| {
            let mut all = old.to_vec();
            all.extend(new.iter().filter(|name| !old.contains(name)).cloned());
            all
        };
        self.replace(Made {
            devices: union(&self.made.devices, &more.devices),
            driver_keys: union(&self.made.driver_keys, &more.driver_keys),
            folders: union(&self.made.folders, &more.folders),
        })
    }

    /// Where the values are kept that the prefix had before; created by the first set.
    pub(crate) fn before(&self) -> Option<Key> {
        self.key.open("before").ok()
    }

    pub(crate) fn create_before(&self) -> Result<Key> {
        Ok(self.key.create("before")?)
    }

    pub(crate) fn remove(self) -> Result<()> {
        drop(self.key);
        Ok(LOCAL_MACHINE.remove_tree(LEDGER)?)
    }
}
