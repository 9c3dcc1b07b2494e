//! Daemons that the tests of images and releases use. The tests run `cargo xtask` as users do.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a panic is a failed test")]

pub mod daemon;
