//! Runs the real programs on inventories.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod discovery;
mod fixtures;
mod hcs;
mod mounts;
mod outcome;
mod reference;
#[cfg(unix)]
mod running;
