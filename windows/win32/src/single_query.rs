//! A query that may not return, asked with a time limit.
//!
//! A thread that hangs in Windows cannot be stopped, so no second thread is started while the
//! first has not returned: the next caller waits for the same answer.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The query that is running, if there is one.
pub(crate) struct SingleQuery<T>(Mutex<Option<Query<T>>>);

struct Query<T> {
    answer: Receiver<T>,
    thread: JoinHandle<()>,
}

impl<T: Send + 'static> SingleQuery<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Runs `query` on its own thread and waits for its answer for at most `limit`. `None` if
    /// there is no answer yet.
    pub(crate) fn ask(
        &self,
        limit: Duration,
        query: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let query = running.take().or_else(|| start(query))?;
        match query.answer.recv_timeout(limit) {
            Ok(answer) => {
                // The process may exit next. Wine loses the exit status if a thread ends at that
                // moment.
                let _ = query.thread.join();
                Some(answer)
            }
            Err(RecvTimeoutError::Timeout) => {
                *running = Some(query);
                None
            }
            // The query panicked.
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

fn start<T: Send + 'static>(query: impl FnOnce() -> T + Send + 'static) -> Option<Query<T>> {
    let (send, answer) = channel();
    let run = move || {
        // The caller may have ended.
        let _ = send.send(query());
    };
    let thread = std::thread::Builder::new().name("query".to_owned()).spawn(run).ok()?;
    Some(Query { answer, thread })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(120);

    #[test]
    fn a_query_that_hangs_runs_once_and_its_late_answer_counts() {
        let query = SingleQuery::new();
        let (release, released) = channel::<u32>();
        let started = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&started);
        let hangs = move || {
            counter.fetch_add(1, Ordering::SeqCst);
            released.recv().unwrap()
        };
        assert_eq!(query.ask(SHORT, hangs), None);
        let counter = Arc::clone(&started);
        assert_eq!(query.ask(SHORT, move || counter.fetch_add(1, Ordering::SeqCst)), None);
        release.send(7).unwrap();
        assert_eq!(query.ask(LONG, || unreachable!("the first query still runs")), Some(7));
        assert_eq!(started.load(Ordering::SeqCst), 1);
        assert_eq!(query.ask(LONG, || 8), Some(8));
    }

    #[test]
    fn a_query_that_panics_has_no_answer_and_can_be_repeated() {
        let query = SingleQuery::<u32>::new();
        assert_eq!(query.ask(LONG, || panic!("on purpose")), None);
        assert_eq!(query.ask(LONG, || 7), Some(7));
    }
}
