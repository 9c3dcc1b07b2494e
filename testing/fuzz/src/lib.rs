//! The properties that hold for every input of a parser of untrusted input.
//!
//! Each public module checks one of them for one input. The test of this crate calls it with
//! the inputs in `seeds` and variations of them; with the feature `libfuzzer`, the program of
//! the same name calls it with what libFuzzer generates.

#![allow(clippy::missing_panics_doc, reason = "a panic reports an input that breaks the property")]

pub mod allocations;
pub mod configurations;
pub mod connections;
mod environment;
pub mod inventories;
pub mod messages;
pub mod paths;
pub mod slot_ids;
pub mod windows_data;
mod windows_path;

use environment::{TestEnvironment, catalog, fixture, load_config};
use windows_path::resolve;

/// Checks that an error names the file and a line of it.
fn sensible(error: &config::ReadError, file: &str, data: &[u8]) {
    assert_eq!(error.file(), file);
    // YAML has more line breaks than `\n`, and UTF-16 has others still. An error at the end of the
    // file is reported on the line after the last.
    let lines = data.iter().filter(|byte| !byte.is_ascii_graphic()).count() + 2;
    let line = error.line().map(|line| line as usize);
    assert!(line.is_none_or(|line| (1..=lines).contains(&line)), "{error}");
}

/// The text at the start of `data`.
fn first_text(data: &[u8]) -> &str {
    data.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
