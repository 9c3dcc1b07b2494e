//! The exit codes of this program, except for wrong usage.

/// The variables do not name the container's devices.
pub(crate) const NO_ALLOCATION: u8 = 120;
/// None of the container's devices exists.
pub(crate) const STALE: u8 = 121;
/// The filter cannot be used, and `--require` was given.
pub(crate) const NO_FILTER: u8 = 122;
/// The program would run unfiltered, and `--require` was given.
pub(crate) const NOT_FILTERED: u8 = 123;
/// The launcher failed for another reason.
pub(crate) const OTHER: u8 = 125;
/// Windows cannot run the program.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The program does not exist.
pub(crate) const NOT_FOUND: u8 = 127;
