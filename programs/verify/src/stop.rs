//! When a step must end: at an interruption or at its time limit.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

/// Why a step must end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The user interrupted the program.
    Interrupted,
    /// The step's time limit has passed.
    TimedOut(Duration),
    /// The step has a bug; the panic handler has printed more.
    Panicked,
}

/// Tells a step when to end. A step cleans up before it ends.
#[derive(Clone)]
pub(crate) struct Stop {
    interrupted: Option<watch::Receiver<bool>>,
    limit: Duration,
    deadline: Instant,
}

impl Stop {
    /// For a step that may take as long as `limit`.
    pub(crate) fn new(interrupted: &watch::Receiver<bool>, limit: Duration) -> Stop {
        Stop { interrupted: Some(interrupted.clone()), limit, deadline: Instant::now() + limit }
    }

    /// For cleaning up, which an interruption does not end.
    pub(crate) fn only_after(limit: Duration) -> Stop {
        Stop { interrupted: None, limit, deadline: Instant::now() + limit }
    }

    /// The same, with a time limit that starts now.
    pub(crate) fn restarted(&self) -> Stop {
        Stop { deadline: Instant::now() + self.limit, ..self.clone() }
    }

    /// Whether the user interrupted the program.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|interrupted| *interrupted.borrow())
    }

    /// Completes when the step must end.
    pub(crate) async fn requested(&self) -> Reason {
        let timeout = sleep_until(self.deadline);
        let Some(mut interrupted) = self.interrupted.clone() else {
            timeout.await;
            return Reason::TimedOut(self.limit);
        };
        tokio::select! {
            biased;
            // The sender lives as long as the steps.
            _ = interrupted.wait_for(|interrupted| *interrupted) => Reason::Interrupted,
            () = timeout => Reason::TimedOut(self.limit),
        }
    }

    /// The result of `step`, unless it must end before.
    pub(crate) async fn or<T>(&self, step: impl Future<Output = T>) -> Result<T, Reason> {
        tokio::select! {
            biased;
            reason = self.requested() => Err(reason),
            result = step => Ok(result),
        }
    }

    /// Runs work that blocks on a thread. The thread is left behind if the step must end
    /// before; it ends with the process.
    pub(crate) async fn or_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Reason> {
        let (send, receive) = oneshot::channel();
        std::thread::spawn(move || {
            // The receiver is dropped when the step has ended.
            let _ = send.send(work());
        });
        match self.or(receive).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_dropped)) => Err(Reason::Panicked),
            Err(reason) => Err(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn a_step_ends_at_an_interruption_or_at_its_limit() {
        block_on(async {
            let (interrupt, interrupted) = watch::channel(false);
            let limit = Duration::from_millis(5);
            let stop = Stop::new(&interrupted, limit);
            let never = std::future::pending::<()>();
            assert_eq!(stop.or(never).await, Err(Reason::TimedOut(limit)));
            let long = Stop::new(&interrupted, Duration::from_secs(600));
            assert_eq!(long.or(async { 7 }).await, Ok(7));
            assert_eq!(long.or_on_thread(|| 8).await, Ok(8));
            let panics = || -> u8 { panic!("on purpose") };
            assert_eq!(long.or_on_thread(panics).await, Err(Reason::Panicked));
            interrupt.send_replace(true);
            assert_eq!(long.or(async { 7 }).await, Err(Reason::Interrupted));
            let cleanup = Stop::only_after(Duration::from_secs(600));
            assert_eq!(cleanup.or(async { 9 }).await, Ok(9));
        });
    }
}
