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

/// An error and its causes, in one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
