//! A query to Windows that may take seconds, or never return: it runs on a separate thread.
//!
//! A thread that hangs cannot be stopped, so a query has at most one thread. What hangs is
//! reported in the log: after a limit, then at growing intervals.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// When a query is reported the first time. Queries take milliseconds, and seconds while a driver
/// starts.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest interval between two reports.
const LONGEST_INTERVAL: Duration = Duration::from_mins(10);

/// When a thread that could not be started is started again.
const RETRY: Duration = Duration::from_secs(10);

/// What the thread of a query is doing, as text, for log and status.
#[derive(Clone, Default)]
pub(crate) struct Activity(Arc<Mutex<String>>);

impl Activity {
    /// The text; empty for a query that does not report its steps.
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// A query and its current run.
pub(crate) struct BackgroundQuery<A> {
    name: &'static str,
    /// What follows for containers while there is no answer.
    effect: &'static str,
    report_after: Duration,
    activity: Activity,
    run: Option<Run<A>>,
}

struct Run<A> {
    answer: oneshot::Receiver<A>,
    since: Instant,
    report_at: Instant,
    /// The query, until a thread takes it.
    work: Work,
    /// When to start a thread again, if none could be started.
    start_at: Option<Instant>,
}

type Work = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl<A: Send + 'static> BackgroundQuery<A> {
    /// A query that is not running.
    #[must_use]
    pub(crate) fn new(name: &'static str, effect: &'static str) -> BackgroundQuery<A> {
        BackgroundQuery {
            name,
            effect,
            report_after: LIMIT,
            activity: Activity::default(),
            run: None,
        }
    }

    /// The same for a query that may take longer before it is reported.
    #[must_use]
    pub(crate) fn reported_after(self, limit: Duration) -> BackgroundQuery<A> {
        BackgroundQuery { report_after: limit, ..self }
    }

    /// What the thread is doing. The query itself sets it.
    pub(crate) fn activity(&self) -> Activity {
        self.activity.clone()
    }

    /// Whether the last run has not ended.
    #[must_use]
    pub(crate) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Runs `query` on a new thread, or later if none can be started. The last run must have ended.
    pub(crate) fn start(&mut self, query: impl FnOnce() -> A + Send + 'static) {
        debug_assert!(!self.is_running(), "a query has at most one thread");
        let (send, answer) = oneshot::channel();
        let work: Work = Arc::new(Mutex::new(Some(Box::new(move || {
            // Without a receiver, the process is ending.
            let _ = send.send(query());
        }))));
        let since = Instant::now();
        let start_at = start_thread(self.name, &work);
        self.run =
            Some(Run { answer, since, report_at: since + self.report_after, work, start_at });
    }

    /// Waits for the answer of the current run. Never completes without one. Logs a run that
    /// takes too long.
    pub(crate) async fn answer(&mut self) -> A {
        match self.end().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    /// Waits for the end of the current run: `None` if it panicked, or nothing runs.
    pub(crate) async fn end(&mut self) -> Option<A> {
        while let Some(run) = &mut self.run {
            tokio::select! {
                biased;
                answer = &mut run.answer => {
                    self.run = None;
                    if answer.is_err() {
                        // The panic handler has printed the panic itself.
                        tracing::warn!(query = self.name, "query panicked");
                    }
                    return answer.ok();
                }
                () = sleep_until(run.start_at.unwrap_or(run.report_at)), if run.start_at.is_some() => {
                    run.start_at = start_thread(self.name, &run.work);
                }
                () = sleep_until(run.report_at) => {
                    let waited = run.since.elapsed();
                    run.report_at += waited.min(LONGEST_INTERVAL);
                    let query = self.name;
                    let effect = self.effect;
                    let step = self.activity.text();
                    let waited_s = waited.as_secs();
                    tracing::warn!(query, step, waited_s, effect, "query has not been answered");
                }
            }
        }
        None
    }
}

/// Starts a thread for the work. If that fails, returns when to try again.
fn start_thread(query: &'static str, work: &Work) -> Option<Instant> {
    let work = Arc::clone(work);
    let error = std::thread::Builder::new()
        .name(query.to_owned())
        .spawn(move || {
            let taken = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(work) = taken {
                work();
            }
        })
        .err()?;
    tracing::warn!(query, %error, "cannot start the thread of a query");
    Some(Instant::now() + RETRY)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use process::logging::test_log::Log;

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
        // Reports become rarer: after 40, 80, 160, 320, 640, 1240 and 1840 seconds.
        let waited = tokio::time::timeout(Duration::from_secs(1900), query.answer()).await;
        let text = log.text();
        assert!(waited.is_err() && text.contains("waited_s=1840"), "{text}");
        assert_eq!(text.matches("query has not been answered").count(), 9, "{text}");
        tokio::time::resume();
        release.send(7).unwrap();
        assert_eq!(query.answer().await, 7);
        assert!(!query.is_running());
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_could_not_be_started_is_started_later() {
        let mut query = BackgroundQuery::new("NVML", "no UUIDs");
        let (send, answer) = oneshot::channel();
        let work: Box<dyn FnOnce() + Send> = Box::new(move || send.send(7).unwrap());
        let work = Arc::new(Mutex::new(Some(work)));
        let since = Instant::now();
        let start_at = Some(since + RETRY);
        query.run = Some(Run { answer, since, report_at: since + 2 * RETRY, work, start_at });
        let early = tokio::time::timeout(RETRY / 2, query.end()).await;
        assert!(early.is_err() && query.is_running());
        tokio::time::advance(RETRY).await;
        tokio::time::resume();
        assert_eq!(query.end().await, Some(7));
    }

    #[tokio::test]
    async fn a_query_that_panics_can_be_repeated() {
        let mut query = BackgroundQuery::new("NVML", "no UUIDs");
        query.start(|| panic!("on purpose"));
        let started = std::time::Instant::now();
        while query.is_running() {
            let answer = tokio::time::timeout(Duration::from_millis(10), query.answer()).await;
            assert!(answer.is_err() && started.elapsed() < Duration::from_mins(1));
        }
        query.start(|| 7);
        assert_eq!(query.answer().await, 7);
    }
}
