//! The configuration of this process, and its changes.

mod reload;
mod source;
mod watch;

pub use reload::{ConfigChange, ConfigReload, ReloadStatus};
pub use source::{ConfigFile, ConfigSource, Reading, load, log, log_notice};
#[cfg(unix)]
pub(crate) use watch::read_again;
