//! The doctor, run as its users run it, and its handbook.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod handbook;
mod reports;
