//! Tests the library through its C interface.

#![allow(clippy::unwrap_used, reason = "a test panics if its setup fails")]

mod calls;
mod exports;
mod handles;
#[cfg(not(windows))]
mod instances;
