//! Why the program does not do its work, and the exit codes.

use std::fmt;

/// Wrong usage.
pub(crate) const USAGE: u32 = 2;
/// The variables do not name the container's devices.
pub(crate) const NO_ALLOCATION: u32 = 120;
/// None of the container's devices exists.
pub(crate) const STALE: u32 = 121;
/// The filter cannot be used, and `--require` was given.
pub(crate) const NO_FILTER: u32 = 122;
/// The program would run unfiltered, and `--require` was given.
pub(crate) const NOT_FILTERED: u32 = 123;
/// The launcher failed for another reason.
pub(crate) const OTHER: u32 = 125;
/// Windows cannot run the program.
pub(crate) const NOT_EXECUTABLE: u32 = 126;
/// The program does not exist.
pub(crate) const NOT_FOUND: u32 = 127;

/// An error, its fix and the exit code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(crate) code: u32,
    message: String,
    hint: &'static str,
}

impl Failure {
    pub(crate) fn new(code: u32, message: impl Into<String>, hint: &'static str) -> Failure {
        Failure { code, message: message.into(), hint }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}\nhint: {}", self.message, self.hint)
    }
}
