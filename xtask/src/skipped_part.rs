//! A part of a test step that could not run on this machine.

/// What was left out, and why. A step whose other parts pass is reported as `ok`, with a line
/// for each of these.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SkippedPart {
    pub(crate) part: String,
    pub(crate) reason: String,
}

impl SkippedPart {
    pub(crate) fn new(part: impl Into<String>, reason: impl Into<String>) -> SkippedPart {
        SkippedPart { part: part.into(), reason: reason.into() }
    }
}
