//! Whether a program prints colors.

use std::io;

use anstream::{AutoStream, ColorChoice};

/// Whether a stream gets colors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Color {
    /// With escape sequences.
    Shown,
    /// Without.
    Plain,
}

impl Color {
    /// For standard error. On Windows this enables the colors of the console.
    #[must_use]
    pub fn of_stderr() -> Color {
        match AutoStream::auto(io::stderr()).current_choice() {
            ColorChoice::AlwaysAnsi => Color::Shown,
            _ => Color::Plain,
        }
    }
}
