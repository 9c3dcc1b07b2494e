//! Command-line tools for DirectX device discovery.
//!
//! Each program is one module. It inspects this host or an inventory, prints its result to standard
//! output and warnings to standard error, and returns an exit status.

pub mod discovery;
pub mod hcs;
mod host_argument;
pub mod mounts;
mod stderr;

/// The command-line definitions of the programs, for their reference pages.
#[must_use]
pub fn programs() -> [clap::Command; 3] {
    [mounts::command(), hcs::command(), discovery::command()]
}
