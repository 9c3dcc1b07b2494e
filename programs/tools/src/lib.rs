//! Command-line tools around DirectX device discovery.
//!
//! Each program is one module: in come its arguments and a host, live or recorded;
//! out go its text on standard output, notes on standard error, and an exit status.

pub mod discovery;
pub mod hcs;
mod host;
pub mod mounts;
mod notes;

/// The programs' definitions, for their reference.
#[must_use]
pub fn programs() -> [clap::Command; 3] {
    use clap::CommandFactory as _;
    [mounts::command(), hcs::Arguments::command(), discovery::command()]
}
