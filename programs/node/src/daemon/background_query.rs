//! A query to Windows that may take seconds, or never return: it runs on a separate thread.
//!
//! A thread that hangs cannot be stopped, so a query has at most one thread. What hangs is
//! reported in the log.

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::daemon::overdue::Overdue;

/// A query and its current run.
pub struct BackgroundQuery<A> {
    name: &'static str,
    /// What follows for containers while there is no answer.
    effect: &'static str,
    run: Option<Run<A>>,
}

struct Run<A> {
    answer: oneshot::Receiver<A>,
    overdue: Overdue,
}

impl<A: Send + 'static> BackgroundQuery<A> {
    /// A query that is not running.
    #[must_use]
    pub fn new(name: &'static str, effect: &'static str) -> BackgroundQuery<A> {
        BackgroundQuery { name, effect, run: None }
    }

    /// Whether the last run has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Runs `query` on a new thread. The last run must have ended.
    pub fn start(&mut self, query: impl FnOnce() -> A + Send + 'static) {
        debug_assert!(!self.is_running(), "a query has at most one thread");
        let (send, answer) = oneshot::channel();
        let run = move || {
            // Without a receiver, the process is ending.
            let _ = send.send(query());
        };
        match std::thread::Builder::new().name(self.name.to_owned()).spawn(run) {
            Ok(_) => self.run = Some(Run { answer, overdue: Overdue::new(Instant::now()) }),
            Err(error) => {
                tracing::warn!(query = self.name, %error, "cannot start the thread of a query");
            }
        }
    }

    /// Waits for the answer of the current run. Never completes without one. Logs a run that
    /// takes too long.
    pub async fn answer(&mut self) -> A {
        while let Some(run) = &mut self.run {
            tokio::select! {
                biased;
                answer = &mut run.answer => {
                    self.run = None;
                    if let Ok(answer) = answer {
                        return answer;
                    }
                    // The panic handler has printed the panic itself.
                    tracing::warn!(query = self.name, "query panicked");
                }
                () = sleep_until(run.overdue.due()) => {
                    let waited_s = run.overdue.report(Instant::now()).as_secs();
                    let (query, effect) = (self.name, self.effect);
                    tracing::warn!(query, waited_s, effect, "query has not been answered");
                }
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::test_log::Log;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_query_that_hangs_is_reported_and_its_late_answer_counts() {
        let log = Log::start();
        let mut query = BackgroundQuery::new("NVML", "no UUIDs");
        let (release, released) = channel();
        query.start(move || released.recv().unwrap());
        let waited = tokio::time::timeout(Duration::from_secs(25), query.answer()).await;
        assert!(waited.is_err() && query.is_running());
        let text = log.text();
        assert_eq!(text.matches("query has not been answered").count(), 2, "{text}");
        assert!(text.contains("query=\"NVML\"") && text.contains("waited_s=20"), "{text}");
        tokio::time::resume();
        release.send(7).unwrap();
        assert_eq!(query.answer().await, 7);
        assert!(!query.is_running());
    }

    #[tokio::test]
    async fn a_query_that_panics_can_be_repeated() {
        let mut query = BackgroundQuery::new("NVML", "no UUIDs");
        query.start(|| panic!("on purpose"));
        let started = std::time::Instant::now();
        while query.is_running() {
            let answer = tokio::time::timeout(Duration::from_millis(10), query.answer()).await;
            assert!(answer.is_err() && started.elapsed() < Duration::from_secs(60));
        }
        query.start(|| 7);
        assert_eq!(query.answer().await, 7);
    }
}
