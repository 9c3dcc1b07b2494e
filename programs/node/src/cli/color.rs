//! Whether a program prints colors.

use std::io;

use anstream::{AutoStream, ColorChoice};

/// Whether standard error shows colors. On Windows this enables the colors of the console.
#[must_use]
pub fn stderr_has_colors() -> bool {
    AutoStream::auto(io::stderr()).current_choice() == ColorChoice::AlwaysAnsi
}
