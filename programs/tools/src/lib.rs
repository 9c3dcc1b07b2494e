//! Command-line tools for DirectX device discovery.
//!
//! Each program is one module. Input: its arguments and a host, which is live or an
//! inventory. Output: the result on standard output, warnings and details on standard
//! error, and an exit status.

pub mod discovery;
pub mod hcs;
mod host;
pub mod mounts;
mod stderr;

/// The command-line definitions of the programs, for their reference pages.
#[must_use]
pub fn programs() -> [clap::Command; 3] {
    use clap::CommandFactory as _;
    [mounts::command(), hcs::Arguments::command(), discovery::command()]
}
