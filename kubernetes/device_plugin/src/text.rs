//! Text for logs and messages: errors with their causes, and text from elsewhere.

use std::error::Error;
use std::fmt;

/// The limit for one value in a message, in bytes: longer than any real name, path or ID.
const LIMIT: usize = 1024;

/// Displays an error, its cause, the cause of that and so on, separated by colons: the `Display`
/// text of an error leaves out its cause.
pub(crate) struct ErrorChain<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// `text` without characters that could forge a line of a log or reorder it, and cut if it is long.
pub(crate) fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LIMIT));
    for (n, c) in text.char_indices() {
        if line.len() >= LIMIT {
            return format!("{line}… ({} more bytes)", text.len() - n);
        }
        if is_unsafe(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
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
