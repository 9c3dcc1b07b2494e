//! Why an inventory cannot be read.

use std::path::PathBuf;

/// Why an inventory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The file cannot be read.
    #[error("cannot read the inventory `{}`", path.display())]
    File {
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The content of the file is wrong; the error has the line and key.
    #[error(transparent)]
    Content(#[from] crate::ReadError),
}

impl InventoryError {
    /// Advice: what to write instead.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            InventoryError::File { source, .. } => crate::file_bytes::read_hint(source),
            InventoryError::Content(error) => error.hint(),
        }
    }
}
