//! Text as a YAML scalar that every reader takes for the same text.

use std::fmt::Write;

/// `text` without quotes where no reader of any YAML version could take it for
/// something else, in single quotes where it can be printed, else in double quotes.
pub(crate) fn scalar(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if text.chars().all(is_printable) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        escaped(text)
    }
}

/// A mapping's key with its colon. A long one is written as an explicit key, for
/// YAML looks no further than 1024 characters for the colon of another.
pub(crate) fn key(text: &str, indent: &str) -> String {
    const LONGEST: usize = 1000;
    let key = scalar(text);
    if key.chars().count() > LONGEST { format!("? {key}\n{indent}:") } else { format!("{key}:") }
}

fn is_plain(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || " ._-()".contains(c);
    let first = text.chars().next();
    first.is_some_and(|c| c.is_ascii_alphanumeric())
        && !text.ends_with([' ', '-'])
        && text.chars().all(inner)
        && !is_word(text)
        && (first.is_some_and(|c| c.is_ascii_alphabetic()) || cannot_be_a_number(text))
}

/// The words that some version of YAML reads as a boolean or as null.
fn is_word(text: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off", "y", "n", "null"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(text))
}

/// Whether text that begins with a digit is no number, date or time: it has two
/// dots, or a letter that stands in no radix prefix, exponent or hexadecimal digit.
fn cannot_be_a_number(text: &str) -> bool {
    text.matches('.').count() > 1 && !text.contains('_')
        || text
            .chars()
            .any(|c| c.is_ascii_alphabetic() && !"abcdefoxtz".contains(c.to_ascii_lowercase()))
}

/// What YAML calls printable, less what breaks lines and what looks like nothing.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            c => write!(out, "\\u{:04X}", u32::from(c)).expect("a string takes all text"),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_there_where_they_are_needed() {
        for plain in
            ["NVIDIA Tesla T4", "21H2", "10.0.20348.1547", "nvcuda.dll", "Hyper-V Video (x)", "3d"]
        {
            let wanted = if plain == "3d" { "'3d'" } else { plain };
            assert_eq!(scalar(plain), wanted);
        }
        for quoted in [
            "",
            " ",
            "a ",
            " a",
            "1809",
            "2.5",
            "true",
            "No",
            "Y",
            "null",
            "~",
            "-a",
            "a: b",
            "a #b",
            "1e5",
            "0x10",
            "1_0.0.0",
            "2001-01-01",
            "PCIROOT(0)#PCI(1B00)",
            "[a]",
            "{a}",
            "a,b",
            "é",
        ] {
            assert_eq!(scalar(quoted), format!("'{quoted}'"));
        }
        assert_eq!(scalar("it's"), "'it''s'");
        assert_eq!(scalar("a\tb\u{0}\u{85}\\\"\n"), r#""a\tb\u0000\u0085\\\"\n""#);
    }
}
