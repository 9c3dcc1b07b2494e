//! The daemon of a node.
//!
//! Every part of a host may hang, so each is read on a separate thread.

#[cfg(test)]
mod blocked_connect_tests;
mod change_log;
pub mod configuration;
mod error;
pub mod launcher;
pub mod metrics;
mod monitoring;
pub mod node_devices;
pub mod readers;
pub mod run;
#[cfg(feature = "test_host")]
pub mod test_host;

pub use error::{DaemonError, LauncherError};
