//! Text for logs and messages: errors with their causes, and text from elsewhere.
//!
//! The crate `devices` prints the same way. This crate is published without it.

use std::error::Error;

/// The limit for one value in a message, in bytes: longer than any real name, path or ID.
const LIMIT: usize = 1024;

/// An error, its cause, the cause of that and so on, separated by colons: the `Display` text of an
/// error leaves out its cause.
pub(crate) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// `text` without characters that could forge a line of a log or reorder it, and cut if it is long.
pub(crate) fn printable(text: &str) -> String {
    let end = (0..=text.len().min(LIMIT)).rev().find(|end| text.is_char_boundary(*end));
    let (start, rest) = text.split_at(end.unwrap_or_default());
    let mut line = String::with_capacity(start.len());
    for c in start.chars() {
        if is_unsafe(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    if rest.is_empty() { line } else { format!("{line}… ({} more bytes)", rest.len()) }
}

/// Whether a character controls the terminal, reorders text or is invisible.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61C}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{E0000}'..='\u{E007F}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_elsewhere_stays_on_its_line() {
        assert_eq!(printable("GPU é"), "GPU é");
        assert_eq!(printable("a\nb\u{1b}[1m\u{202e}c"), r"a\nb\u{1b}[1m\u{202e}c");
        assert_eq!(printable("a\u{e0041}"), r"a\u{e0041}");
        assert_eq!(printable(&"x".repeat(1030)), "x".repeat(1024) + "… (6 more bytes)");
    }
}
