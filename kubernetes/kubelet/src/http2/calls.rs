//! The calls of one connection: an executor for hyper that owns the tasks it spawns.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::task::JoinSet;

use super::Panicked;

/// Spawns and owns the tasks of the calls. They are aborted when the last clone is dropped.
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
    /// Removes calls that have ended. Ready once a call has panicked. Poll this in the same task
    /// as the connection and after it, or the end of a new call is not noticed.
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

    /// How many calls are running, as of the last [`Self::poll_panicked`].
    pub(super) fn running(&self) -> usize {
        self.lock().running.len()
    }

    /// How many calls were started since the connection began.
    pub(super) fn total(&self) -> u64 {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, Started> {
        // Every change under this lock is complete, so a poisoned lock still holds a valid state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
