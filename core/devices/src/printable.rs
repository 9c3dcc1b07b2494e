//! Makes untrusted text safe to print.
//!
//! Device names, IDs from clients, messages of a kubelet and values of an inventory may
//! contain anything. In a log or on a terminal, control characters could forge a line or
//! change colors, bidirectional controls could reorder what people read, and long text could
//! hide the rest. Printable text is one line without these characters, of limited length.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// The limit for one value in a message, in bytes: longer than any real name, path or ID.
pub const VALUE_LIMIT: usize = 1024;

/// `text` with every character that does not print as itself replaced by its escape sequence
/// (`\n`, `\u{1b}`), and cut after [`VALUE_LIMIT`] bytes.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.len() <= VALUE_LIMIT && !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut line = Line::new(VALUE_LIMIT);
    // A full line refuses the rest.
    let _ = line.write_str(text);
    Cow::Owned(line.finish())
}

/// As [`printable`], without a limit, for a line that this program composed.
#[must_use]
pub fn printable_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut line = Line::new(usize::MAX);
    // Writing to a line cannot fail.
    let _ = line.write_str(text);
    Cow::Owned(line.finish())
}

/// Formats `value` as [`printable`] text without building the whole text first.
#[must_use]
pub fn printable_display(value: impl fmt::Display) -> String {
    let mut line = Line::new(VALUE_LIMIT);
    let _ = write!(line, "{value}");
    line.finish()
}

/// As [`printable`], for text of several lines that this program composed: line feeds and tabs
/// stay, and the length is not limited.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    let escaped = |c| is_unsafe(c) && c != '\n' && c != '\t';
    if !text.chars().any(escaped) {
        return Cow::Borrowed(text);
    }
    let mut lines = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if escaped(c) { push_escape(&mut lines, c) } else { lines.push(c) }
    }
    Cow::Owned(lines)
}

/// Whether `c` must not be printed as it is: control characters, which include ESC and
/// NUL; line and paragraph separators; bidirectional controls (Unicode Standard Annex 9);
/// invisible characters and tags, with which two different names look the same.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061C}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{E0000}'..='\u{E007F}'
        )
}

/// One line that takes printable text up to a limit.
struct Line {
    text: String,
    limit: usize,
    /// How much text came after the limit, in bytes.
    cut: usize,
}

impl Line {
    fn new(limit: usize) -> Line {
        Line { text: String::new(), limit, cut: 0 }
    }

    fn finish(mut self) -> String {
        if self.cut > 0 {
            // Writing to a string cannot fail.
            let _ = write!(self.text, "… ({} more bytes)", self.cut);
        }
        self.text
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for (n, c) in text.char_indices() {
            if self.cut > 0 || self.text.len() + c.len_utf8() > self.limit {
                self.cut += text.len() - n;
                break;
            }
            if is_unsafe(c) { push_escape(&mut self.text, c) } else { self.text.push(c) }
        }
        Ok(())
    }
}

fn push_escape(text: &mut String, c: char) {
    if c.is_ascii_control() {
        text.extend(c.escape_default());
    } else {
        text.extend(c.escape_unicode());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_and_bidi_characters_become_escape_sequences() {
        for (text, expected) in [
            ("NVIDIA Tesla T4 — 16 GB", "NVIDIA Tesla T4 — 16 GB"),
            (r"PCI\VEN_10DE&DEV_1EB8\3", r"PCI\VEN_10DE&DEV_1EB8\3"),
            ("a\nb\r\tc\0", r"a\nb\r\tc\u{0}"),
            ("\x1b[31mred\x7f\u{9b}", r"\u{1b}[31mred\u{7f}\u{9b}"),
            ("a\u{202e}cba\u{2069}", r"a\u{202e}cba\u{2069}"),
            ("zero\u{200b}width\u{feff}", r"zero\u{200b}width\u{feff}"),
            ("two\u{2028}lines\u{2029}", r"two\u{2028}lines\u{2029}"),
        ] {
            assert_eq!(printable(text), expected);
            assert_eq!(printable_display(text), expected);
            assert_eq!(printable_line(text), expected);
        }
        assert_eq!(printable_lines("a\n\tb\x1b\r\n"), "a\n\tb\\u{1b}\\r\n");
    }

    #[test]
    fn long_text_is_cut_at_a_character_and_says_so() {
        let text = "ä".repeat(VALUE_LIMIT);
        let cut = printable(&text);
        assert_eq!(cut, format!("{}… (1024 more bytes)", "ä".repeat(VALUE_LIMIT / 2)));
        let pieces = std::fmt::from_fn(|f| (0..VALUE_LIMIT).try_for_each(|_| f.write_str("ä")));
        assert_eq!(printable_display(pieces), cut);
    }

    proptest! {
        #[test]
        fn the_result_is_one_short_safe_line(text: String, repeat in 1_usize..200) {
            let text = text.repeat(repeat);
            let result = printable(&text);
            prop_assert!(!result.chars().any(is_unsafe));
            // An escape sequence has at most ten bytes.
            prop_assert!(result.len() <= VALUE_LIMIT + 10 + "… (18446744073709551615 more bytes)".len());
            prop_assert_eq!(printable_display(&text), result.as_ref());
        }

        #[test]
        fn safe_text_is_unchanged(text in r"[ -~äöü漢字]{0,300}") {
            prop_assert_eq!(printable(&text), text.as_str());
            let long = text.repeat(100);
            prop_assert_eq!(printable_line(&long), long.as_str());
        }
    }
}
