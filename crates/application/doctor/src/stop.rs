//! When a step must end: at an interruption or at its time limit.

use std::io;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

pub(crate) const PANICKED: &str = "the check panicked; standard error contains the message";

/// Why a step ended before it had a result.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    #[error("interrupted")]
    Interrupted,
    #[error("no result within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
}

/// Says when a step must end. A step cleans up before it ends.
pub(crate) struct Stop {
    interrupted: watch::Receiver<bool>,
    limit: Duration,
    deadline: Instant,
}

impl Stop {
    /// The end of a step that may take as long as `limit`.
    pub(crate) fn new(interrupted: &watch::Receiver<bool>, limit: Duration) -> Stop {
        Stop { interrupted: interrupted.clone(), limit, deadline: Instant::now() + limit }
    }

    /// The end of work that no interruption ends.
    pub(crate) fn only_after(limit: Duration) -> Stop {
        Stop::new(&watch::channel(false).1, limit)
    }

    /// The end of a further step, whose time limit is the same and starts now.
    pub(crate) fn restarted(&self) -> Stop {
        Stop::new(&self.interrupted, self.limit)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        *self.interrupted.borrow()
    }

    /// The result of `step`, unless it must end before.
    pub(crate) async fn or<T>(&self, step: impl Future<Output = T>) -> Result<T, Reason> {
        let mut interrupted = self.interrupted.clone();
        tokio::select! {
            biased;
            Ok(_) = interrupted.wait_for(|interrupted| *interrupted) => Err(Reason::Interrupted),
            () = sleep_until(self.deadline) => Err(Reason::TimedOut(self.limit)),
            result = step => Ok(result),
        }
    }

    /// Runs work that blocks on a thread. If the step must end before the work, the thread
    /// continues until the process ends. Work that panics is an error.
    pub(crate) async fn or_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        self.or(spawn_blocking(work)).await?.context(PANICKED)
    }

    /// Runs a program to its end, or ends it when the step must end.
    pub(crate) async fn or_output(
        &self,
        mut program: Command,
    ) -> Result<io::Result<Output>, Reason> {
        program.stdin(Stdio::null()).kill_on_drop(true);
        self.or(program.output()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_step_ends_at_an_interruption_or_at_its_limit() {
        let (interrupt, interrupted) = watch::channel(false);
        let limit = Duration::from_millis(5);
        let stop = Stop::new(&interrupted, limit);
        let never = std::future::pending::<()>();
        assert_eq!(stop.or(never).await, Err(Reason::TimedOut(limit)));
        let long = Stop::new(&interrupted, Duration::from_mins(10));
        assert_eq!(long.or(async { 7 }).await, Ok(7));
        assert_eq!(long.or_on_thread(|| 8).await.unwrap(), 8);
        let panicked = long.or_on_thread(|| panic!("a driver returned nonsense")).await;
        assert_eq!(panicked.unwrap_err().to_string(), PANICKED);
        assert!(!long.is_interrupted());
        interrupt.send_replace(true);
        assert_eq!(long.or(async { 7 }).await, Err(Reason::Interrupted));
        assert!(long.is_interrupted());
        let cleanup = Stop::only_after(Duration::from_mins(10));
        assert_eq!(cleanup.or(async { 9 }).await, Ok(9));
    }
}
