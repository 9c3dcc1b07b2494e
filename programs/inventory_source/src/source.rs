//! The adapter source.

use std::path::PathBuf;

use devices::{AdapterSource, ChangeCallback, HostSnapshot, SourceError};
use file_watch::FileWatch;

/// A host described by an inventory file. Each snapshot reads the file again; a file that
/// cannot be read or is malformed is an error of that snapshot only. A source that watches
/// its file waits until nobody writes it.
#[derive(Debug)]
pub struct InventorySource {
    path: PathBuf,
    watch: Option<FileWatch>,
}

impl InventorySource {
    /// A source for the file `path`, which the first snapshot reads first.
    pub fn new(path: impl Into<PathBuf>) -> InventorySource {
        InventorySource { path: path.into(), watch: None }
    }
}

impl AdapterSource for InventorySource {
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        let read = || inventory::read(&self.path);
        match &self.watch {
            None => Ok(read()?),
            Some(watch) => Ok(watch.read_still(read).map_err(|error| {
                format!("cannot use the inventory `{}`: {error}", self.path.display())
            })??),
        }
    }

    /// Follows the file when it is written in place, replaced by a rename, reached through
    /// symbolic links that change, deleted for a while, or in a folder that is created
    /// later. The operating system reports changes; nothing polls. Network file systems do
    /// not report them.
    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
        self.watch = Some(FileWatch::start([&self.path], on_change)?);
        Ok(())
    }
}
