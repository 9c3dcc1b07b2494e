//! The error for malformed text.

/// A text that cannot be parsed, and what was expected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct ParseError {
    text: String,
    expected: &'static str,
}

impl ParseError {
    /// `expected` completes the sentence that begins with the text and *is not*.
    pub(crate) fn new(text: &str, expected: &'static str) -> ParseError {
        ParseError { text: text.to_owned(), expected }
    }
}
