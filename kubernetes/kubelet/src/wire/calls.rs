//! The calls of one connection: an executor for hyper that keeps what it starts.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::task::JoinSet;

use super::Panicked;

/// Starts calls and owns them: they are aborted when the last clone is dropped.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Started>>);

#[derive(Default)]
struct Started {
    running: JoinSet<()>,
    total: u64,
}

impl<F> hyper::rt::Executor<F> for Calls
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, call: F) {
        let mut started = self.lock();
        started.total += 1;
        started.running.spawn(async move {
            call.await;
        });
    }
}

impl Calls {
    /// Removes calls that have ended; ready once one has panicked. To be polled after
    /// whatever starts calls, in the same task, or a new call's end goes unnoticed.
    pub(super) fn poll_panicked(&self, cx: &mut Context<'_>, task: &str) -> Poll<Panicked> {
        let mut started = self.lock();
        loop {
            match started.running.poll_join_next(cx) {
                Poll::Ready(Some(Err(e))) if e.is_panic() => {
                    return Poll::Ready(Panicked::new(task.to_owned(), &*e.into_panic()));
                }
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// How many calls run, as far as [`Self::poll_panicked`] has looked.
    pub(super) fn running(&self) -> usize {
        self.lock().running.len()
    }

    /// How many calls were ever started.
    pub(super) fn total(&self) -> u64 {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, Started> {
        // Nothing is left half done under this lock, so a panic elsewhere spoils nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
