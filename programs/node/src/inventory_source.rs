//! A host described by an inventory file, as a source of adapters that follows the file.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use devices::{AdapterSource, ChangeCallback, HostSnapshot, SourceError};

use crate::file_poll::{FilePoll, INTERVAL};

/// A host described by an inventory file. Each snapshot reads the file again; a file that
/// cannot be read or is malformed is an error of that snapshot only.
#[derive(Debug)]
pub struct InventorySource {
    path: PathBuf,
    /// The file as it was before the first read.
    file: FilePoll,
    watch: Option<Watch>,
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
        self.watch = Some(Watch::start(self.file.clone(), on_change)?);
        Ok(())
    }
}

/// The thread that looks at the file, until this is dropped.
#[derive(Debug)]
struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn start(mut file: FilePoll, on_change: ChangeCallback) -> std::io::Result<Watch> {
        let (stop, stopped) = channel::<()>();
        let run = move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if file.has_changed() {
                    on_change();
                }
            }
        };
        let thread = std::thread::Builder::new().name("inventory".to_owned()).spawn(run)?;
        Ok(Watch { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watch {
    /// Whoever drops a source may drop what its callback uses.
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread has already printed a panic of the callback.
            let _ = thread.join();
        }
    }
}
