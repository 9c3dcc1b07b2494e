//! A recorded inventory as a source of adapters.

use std::path::{Path, PathBuf};

use devices::{AdapterSource, ChangeCallback, HostSnapshot, SourceError};

use crate::read;
use crate::watch::FileWatch;

/// A host that is a file. Each snapshot reads the file anew; a file that cannot be
/// read or is malformed is an error of that snapshot alone.
#[derive(Debug)]
pub struct RecordedSource {
    path: PathBuf,
    watch: Option<FileWatch>,
}

impl RecordedSource {
    /// A source over the file `path`, which is first read by the first snapshot.
    pub fn new(path: impl Into<PathBuf>) -> RecordedSource {
        RecordedSource { path: path.into(), watch: None }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AdapterSource for RecordedSource {
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        Ok(read(&self.path)?)
    }

    /// Follows the file: written in place, replaced by a rename, reached over links
    /// that are swapped, gone for a while, in a folder that comes later. The
    /// operating system tells; nothing polls. Network file systems do not tell.
    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
        self.watch = Some(FileWatch::start(&self.path, on_change)?);
        Ok(())
    }
}
