//! How a command prints its result.

use serde::Serialize;

use crate::{Failure, print};

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
    print(&(text + "\n"))
}
