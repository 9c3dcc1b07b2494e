//! The library as a C program sees it.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod calls;
mod exports;
mod handles;
#[cfg(not(windows))]
mod instances;
