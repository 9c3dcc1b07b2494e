//! The error of a failed call to Windows.

use std::io;

/// A failed operation and the error that Windows reported.
#[derive(Debug, thiserror::Error)]
#[error("{operation}")]
pub(crate) struct WindowsError {
    operation: String,
    source: io::Error,
}

impl WindowsError {
    /// `operation` says what failed and on which object, such as `cannot read key x`.
    pub(crate) fn new(operation: impl Into<String>, source: io::Error) -> Self {
        Self { operation: operation.into(), source }
    }
}
