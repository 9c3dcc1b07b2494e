//! The adapter source.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use config::inventory::InventoryError;
use devices::{AdapterSource, ChangeCallback, HostSnapshot, SourceError};
use file_watch::FileWatch;

/// A host described by an inventory file. Each snapshot reads the file again; a file that
/// cannot be read or is malformed is an error of that snapshot only. A source that watches
/// its file waits until nobody writes it.
#[derive(Debug)]
pub struct InventorySource {
    path: PathBuf,
    watch: Option<FileWatch>,
    opened: Option<Opened>,
}

/// What [`InventorySource::open`] has read, for the first snapshot.
#[derive(Debug)]
struct Opened {
    hash: u64,
    snapshot: HostSnapshot,
}

impl InventorySource {
    /// A source for the file `path`, which the first snapshot reads first.
    pub fn new(path: impl Into<PathBuf>) -> InventorySource {
        InventorySource { path: path.into(), watch: None, opened: None }
    }

    /// Reads the file `path`. The first snapshot reads it again, and parses it only if it has
    /// changed.
    pub fn open(path: &Path) -> Result<InventorySource, InventoryError> {
        let bytes = config::inventory::read_file(path)?;
        let snapshot = config::inventory::parse_file(path, &bytes)?;
        let opened = Some(Opened { hash: hash(&bytes), snapshot });
        Ok(InventorySource { opened, ..InventorySource::new(path) })
    }
}

impl AdapterSource for InventorySource {
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        let mut opened = self.opened.take();
        let mut read = || {
            let bytes = config::inventory::read_file(&self.path)?;
            match opened.take() {
                Some(opened) if opened.hash == hash(&bytes) => Ok(opened.snapshot),
                _ => config::inventory::parse_file(&self.path, &bytes),
            }
        };
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

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
