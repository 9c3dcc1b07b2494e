//! The unmodified static program for Linux nodes, whose system calls for `/dev/dxg` a double of the
//! driver answers from an inventory.
//!
//! The program runs in an empty root (`chroot`), and the kernel passes its calls to the double
//! (seccomp user notification). Both need root. The program is that of a debug build:
//!
//! ```console
//! cargo build -p plugin --target x86_64-unknown-linux-musl
//! cargo test -p dxg_suite -- --ignored
//! ```
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails with a panic")]

mod commands;
mod daemon;
mod driver;
mod machine;
mod supervisor;
