//! The event loop of the commands that talk to a kubelet or a daemon.

use std::ops::Deref;

use cli::Failure;
use tokio::runtime::{Builder, Runtime};

/// An event loop on the current thread: nothing in the daemon takes long enough to need another.
///
/// Dropping it waits for no blocking call. On Windows a connect is one, and hangs while a process
/// listens and does not accept. Dropping a [`Runtime`] itself would wait for it.
pub struct EventLoop(Option<Runtime>);

/// Builds an event loop.
pub fn build() -> Result<EventLoop, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::runtime(anyhow::Error::new(error).context("cannot start the event loop"))
    })?;
    Ok(EventLoop(Some(runtime)))
}

impl Deref for EventLoop {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("only drop takes the runtime")
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
