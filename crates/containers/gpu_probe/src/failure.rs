//! Why a program for containers does not do its work, and how it prints.
//!
//! `command_line` has the failures of the node's programs, which print causes, too.

use std::fmt;
use std::io::{self, ErrorKind, Write as _};

use host::printable::printable_lines;

/// The exit code of wrong usage.
pub const USAGE: u8 = 2;

/// An error, its fix and the exit code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub code: u8,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Failure {
    /// A failure; `hint` says how to fix it.
    pub fn new(code: u8, message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("error: {}\nhint: {}", self.message, self.hint);
        f.write_str(&printable_lines(&text))
    }
}

/// Writes `text` to standard output. A closed pipe (`| head`) is not an error; a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let message = format!("cannot write to standard output: {error}");
            Err(Failure::new(1, message, "check where standard output goes"))
        }
        _ => Ok(()),
    }
}
