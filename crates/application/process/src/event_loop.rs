//! An event loop.

use std::ops::Deref;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep_until};

use crate::ProcessError;

/// An event loop on the current thread: nothing in a program of this product takes long enough to need another.
///
/// Dropping it waits for its threads, but for a blocking call no longer than a tenth of a second.
/// On Windows a connect is one, and hangs while a process listens and does not accept. Dropping a
/// [`Runtime`] itself would wait for it.
pub struct EventLoop(Option<Runtime>);

/// How long the end of the threads may take: as [`win32::threads`] explains, a process should not
/// exit while one of them ends.
const THREADS_LIMIT: Duration = Duration::from_millis(100);

/// Builds an event loop.
pub fn build() -> Result<EventLoop, ProcessError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| ProcessError::System { what: "start the event loop", source })?;
    Ok(EventLoop(Some(runtime)))
}

/// Waits until this time, or forever.
pub async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
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
            runtime.shutdown_timeout(THREADS_LIMIT);
        }
    }
}
