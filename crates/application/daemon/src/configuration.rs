//! The configuration of the daemon: its log and its changes.

mod log;
mod reload;
mod watch;

pub use log::{log, log_notice};
pub use reload::{ConfigReload, ReloadStatus};
pub(crate) use watch::read_again;
