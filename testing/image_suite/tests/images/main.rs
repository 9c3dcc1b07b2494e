//! Tests of `cargo xtask image`, and what others do with its images.
//!
//! The images contain stand-ins for the programs, except in one test. Tests that need other
//! tools are ignored; `cargo xtask test image` installs the tools and runs them. Everything
//! listens on free ports of the loopback interface.

#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

mod content;
mod examples;
mod image;
mod options;
mod push;
mod security;
