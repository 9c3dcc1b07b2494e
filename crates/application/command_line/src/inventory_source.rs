use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;

use host::{AdapterSource, ChangeCallback, HostSnapshot, SourceError};

use crate::file_poll::{FilePoll, INTERVAL};

/// A host described by an inventory file, as a source of adapters that follows the file. A file
/// that cannot be read or is malformed is an error of one snapshot only.
#[derive(Debug)]
pub struct InventorySource {
    path: PathBuf,
    /// The file as it was before the first read.
    file: FilePoll,
    /// The thread that looks at the file ends when this is dropped.
    watch: Option<Sender<()>>,
}

impl InventorySource {
    /// A source for the file `path`, which the first snapshot reads first.
    pub fn new(path: impl Into<PathBuf>) -> InventorySource {
        let path = path.into();
        InventorySource { file: FilePoll::new(vec![path.clone()]), path, watch: None }
    }
}

impl AdapterSource for InventorySource {
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        Ok(config::inventory::read(&self.path)?)
    }

    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
        let (watch, dropped) = channel::<()>();
        let mut file = self.file.clone();
        thread::Builder::new().name("inventory".to_owned()).spawn(move || {
            while dropped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if file.has_changed() {
                    on_change();
                }
            }
        })?;
        self.watch = Some(watch);
        Ok(())
    }
}
