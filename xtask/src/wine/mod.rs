//! Wine: finds or installs it, and runs Windows programs with it.

mod debian_archive;
mod debian_root;
mod display;
mod prefix;
mod second_gpu;
mod simulated_host;

pub(crate) use self::prefix::{Wine, windows_path};
pub(crate) use self::simulated_host::SimulatedHost;
