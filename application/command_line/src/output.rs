//! How a command prints its result.

use std::fmt::Write as _;

use devices::printable::is_unsafe;
use serde::Serialize;

use crate::failure::Failure;
use crate::stdout::print;

/// The value of a command's `--output` option.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputFormat {
    /// Human-readable
    Text,
    /// JSON
    Json,
}

/// Prints a JSON document to standard output.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::runtime)?;
    print(&(escaped(&text) + "\n"))
}

/// `json` with the characters escaped that JSON allows and terminals interpret. They can
/// only be inside strings, so the document stays the same.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_contains_no_terminal_controls_and_reads_back() {
        let value: String = ('\0'..='\u{2100}').chain(['\u{E0041}']).collect();
        let text = escaped(&serde_json::to_string(&value).unwrap());
        assert!(!text.chars().any(is_unsafe), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), value);
    }
}
