//! What the fuzz targets share: a model of how Windows reads paths, and made-up
//! surroundings and hosts to run the product in.
//!
//! Each target in `targets/` is one program that libFuzzer feeds. `cargo xtask fuzz`
//! builds and runs them; `seeds/` holds inputs to begin with and inputs that once
//! failed.

// The tests of this crate are built with coverage too, which libFuzzer takes.
#[cfg(test)]
use libfuzzer_sys as _;

mod made;
mod windows_path;

pub use made::{Made, catalog, configured, fixture};
pub use windows_path::resolve;
