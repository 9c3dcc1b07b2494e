//! The error of a failed call to Windows.

use std::fmt::Display;
use std::io;

/// Adds to `error` what failed and on which object, such as `cannot read key x`.
pub(crate) fn failed(operation: impl Display, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{operation}: {error}"))
}
