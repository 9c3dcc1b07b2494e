//! The configuration of this process, and its changes.

mod reload;
mod source;
mod watch;

pub use reload::{ConfigReload, ReloadStatus};
pub use source::{load, log, log_notice};
#[cfg(unix)]
pub(crate) use watch::read_again;
