//! Strict parsing of decimal numbers, and the error for malformed text.

use std::str::FromStr;

/// A text that cannot be parsed, and what was expected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is not {expected}{}", advice.map(|advice| format!("; {advice}")).unwrap_or_default())]
pub struct ParseError {
    text: String,
    expected: &'static str,
    advice: Option<&'static str>,
}

impl ParseError {
    /// `expected` completes the sentence that begins with the text and *is not*.
    #[must_use]
    pub fn new(text: &str, expected: &'static str) -> ParseError {
        ParseError { text: text.to_owned(), expected, advice: None }
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn with_advice(self, advice: &'static str) -> ParseError {
        ParseError { advice: Some(advice), ..self }
    }
}

/// Parses a decimal number without sign or spaces; leading zeros are allowed.
///
/// `str::parse` also accepts a leading `+`.
pub(crate) fn parse_decimal<T: FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Parses exactly `N` decimal numbers with a separator between them.
pub(crate) fn parse_decimals<T: FromStr, const N: usize>(
    text: &str,
    separator: char,
) -> Option<[T; N]> {
    let numbers: Option<Vec<T>> = text.split(separator).map(parse_decimal).collect();
    numbers?.try_into().ok()
}
