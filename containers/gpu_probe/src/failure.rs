//! Why the program does not test, and how it prints.

use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

use devices::printable::printable_lines;

/// The exit status of wrong usage.
pub(crate) const USAGE: u8 = 2;

/// An error, how to fix it, and the exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Failure {
    pub(crate) fn new(status: u8, message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), hint: hint.into() }
    }

    /// Prints the error, and returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        let text = format!("error: {}\nhint: {}\n", self.message, self.hint);
        // Without standard error, only the exit status reports it.
        let _ = io::stderr().write_all(printable_lines(&text).as_bytes());
        ExitCode::from(self.status)
    }
}

/// Writes `text` to standard output. A closed pipe (`| head`) is not an error; a full disk is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let message = format!("cannot write to standard output: {error}");
            Err(Failure::new(1, message, "check where standard output goes"))
        }
        _ => Ok(()),
    }
}
