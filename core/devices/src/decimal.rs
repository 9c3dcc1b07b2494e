//! Strict parsing of decimal numbers.

use std::str::FromStr;

/// Parses a decimal number without sign or spaces; leading zeros are allowed.
///
/// `str::parse` also accepts a leading `+`.
pub(crate) fn parse_decimal<T: FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
