//! The properties that hold for every input of a parser of untrusted input.
//!
//! Each public module checks one of them for one input. The test of this crate calls it with
//! the inputs in `seeds` and variations of them; with the feature `libfuzzer`, the program of
//! the same name calls it with what libFuzzer generates.

#![allow(clippy::missing_panics_doc, reason = "a panic reports an input that breaks the property")]

pub mod allocations;
pub mod configurations;
mod environment;
mod input;
pub mod inventories;
pub mod messages;
pub mod paths;
pub mod replica_ids;
pub mod windows_data;
mod windows_path;

use environment::{TestEnvironment, catalog, fixture, load_config};
use input::{first_text, sensible};
use windows_path::resolve;
