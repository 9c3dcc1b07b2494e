//! What the fuzz targets share: a model of how Windows reads paths, and an environment
//! and hosts for the product.
//!
//! Each target in `targets/` is a program that libFuzzer runs with generated inputs.
//! `cargo xtask fuzz` builds and runs them. `seeds/` contains initial inputs and inputs
//! that failed before.

// The tests of this crate are built with coverage as well, and libFuzzer provides its symbols.
#[cfg(test)]
use libfuzzer_sys as _;

mod environment;
mod windows_path;

pub use environment::{TestEnvironment, catalog, fixture, load_config};
pub use windows_path::resolve;
