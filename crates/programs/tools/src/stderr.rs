//! Warnings and details on standard error.

use std::fmt;
use std::io::Write as _;

use host::printable::printable_line;

/// Prints a warning.
pub(crate) fn warn(text: impl fmt::Display) {
    line(&format!("warning: {text}"));
}

/// Prints a line. Errors are ignored: if standard error is closed, nobody reads it.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable_line(text));
}
