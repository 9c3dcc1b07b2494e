//! The daemon of a node, and what other programs need that follow its host and its configuration.
//!
//! Every part of a host may hang, so each is read on a separate thread. A log that nothing reads
//! does not stop its program.

pub mod answering_daemons;
#[cfg(test)]
mod blocked_connect_tests;
pub mod configuration;
pub mod cordon_file;
mod error;
pub mod event_loop;
pub mod host;
pub mod launcher;
pub mod logging;
pub mod metrics;
pub mod monitoring;
pub mod node_devices;
pub mod plugin_client;
pub mod plugin_report;
pub mod run;
pub mod signals;
pub mod status;
#[cfg(feature = "test_host")]
pub mod test_host;

pub use error::{DaemonError, LauncherError};
