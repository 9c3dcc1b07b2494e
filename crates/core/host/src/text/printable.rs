//! Makes untrusted text safe to print.
//!
//! Device names, IDs from clients, messages of a kubelet and values of an inventory may
//! contain anything. In a log or on a terminal, control characters could forge a line or
//! change colors, bidirectional controls could reorder what people read, and long text could
//! hide the rest. Printable text is one line without these characters, of limited length.

use std::borrow::Cow;
use std::fmt;

/// The limit for one value in a message, in bytes: longer than any real name, path or ID.
pub const VALUE_LIMIT: usize = 1024;

/// `text` with every character that does not print as itself replaced by its escape sequence
/// (`\n`, `\u{1b}`), and cut after [`VALUE_LIMIT`] bytes.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let end = (0..=text.len().min(VALUE_LIMIT)).rev().find(|end| text.is_char_boundary(*end));
    let (start, rest) = text.split_at(end.unwrap_or_default());
    match (printable_line(start), rest.len()) {
        (start, 0) => start,
        (start, rest) => Cow::Owned(format!("{start}… ({rest} more bytes)")),
    }
}

/// Like [`printable`], but without a limit, for a line that this program composed.
#[must_use]
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// Like [`printable`], for text of several lines that this program composed: line feeds and tabs
/// stay, and the length is not limited.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unsafe(c) && c != '\n' && c != '\t')
}

/// Formats `value` as [`printable`] text.
#[must_use]
pub fn printable_display(value: impl fmt::Display) -> String {
    printable(&value.to_string()).into_owned()
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

/// `text` with the characters for which `is_escaped` is true replaced by their escape sequences.
fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
    }

    proptest! {
        #[test]
        fn the_result_is_one_short_safe_line(text: String, repeat in 1_usize..200) {
            let text = text.repeat(repeat);
            let result = printable(&text);
            prop_assert!(!result.chars().any(is_unsafe));
            // The escape sequence of a byte has at most six bytes.
            prop_assert!(result.len() <= 6 * VALUE_LIMIT + "… (18446744073709551615 more bytes)".len());
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
