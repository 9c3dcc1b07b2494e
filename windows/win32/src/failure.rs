//! A call to Windows that failed, as the rest of the crate passes it on.

use std::io;

/// What was asked of Windows, and its answer.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Failure {
    what: String,
    source: io::Error,
}

impl Failure {
    /// `what` names the thing that could not be done and its object.
    pub(crate) fn new(what: impl Into<String>, source: io::Error) -> Self {
        Self { what: what.into(), source }
    }
}

/// An error and all its causes, in one line.
pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
