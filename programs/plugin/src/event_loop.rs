//! The event loop of the commands that talk to a kubelet or a daemon.

use cli::Failure;
use tokio::runtime::{Builder, Runtime};

/// Builds an event loop on the current thread: nothing in the daemon takes long enough to
/// need another.
pub(crate) fn build() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::runtime(anyhow::Error::new(error).context("cannot start the event loop"))
    })
}
