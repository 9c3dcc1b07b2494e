//! The real programs, run as their users run them.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod allocations;
mod commands;
mod daemon;
mod demonstration;
mod driver_modes;
#[cfg(unix)]
mod files;
mod foreign_text;
mod harness;
#[cfg(unix)]
mod log_delivery;
mod monitoring;
mod published_record;
mod reference;
mod reload;
mod shutdown_request;
mod simulated_nodes;
mod terminal_picture;
mod two_daemons;
