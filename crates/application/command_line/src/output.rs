//! How a command prints its result to standard output.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};

use anstream::AutoStream;
use anyhow::Context as _;
use host::printable::is_unsafe;
use serde::Serialize;

use crate::failure::Failure;

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

/// Writes `text` to standard output. A closed pipe (`| head`) is not an error; a full disk
/// is.
pub fn print(text: &str) -> Result<(), Failure> {
    write_to(&mut io::stdout().lock(), text)
}

/// Writes `text` as [`print()`] does, without its colors where no terminal shows them.
pub(crate) fn print_colored(text: &str) -> Result<(), Failure> {
    write_to(&mut AutoStream::auto(io::stdout().lock()), text)
}

fn write_to(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output").map_err(Failure::runtime),
    }
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

    struct FailingWriter(ErrorKind);

    impl Write for FailingWriter {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_not_an_error_and_a_full_disk_is() {
        assert!(write_to(&mut FailingWriter(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(write_to(&mut FailingWriter(ErrorKind::StorageFull), "x").is_err());
    }
}
