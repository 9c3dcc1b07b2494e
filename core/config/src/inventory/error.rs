//! Why an inventory cannot be read.

use std::path::PathBuf;

/// Why an inventory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The file itself.
    #[error("cannot read the inventory `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// What the file says, with its line and key.
    #[error(transparent)]
    Content(#[from] crate::ReadError),
}

impl InventoryError {
    /// Advice: what to write instead.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            InventoryError::File { source, .. } => crate::regular_file::read_hint(source),
            InventoryError::Content(error) => error.hint(),
        }
    }
}
