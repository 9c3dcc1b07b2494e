//! Runs at most one blocking call for each path.
//!
//! A connect on Windows blocks while a process listens and does not accept. Whoever waits for it has
//! a time limit, but the thread of the call stays. Without a limit for them, an attempt each second
//! would take all threads for blocking calls within minutes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::task::{JoinError, spawn_blocking};

/// The calls that have not ended.
#[derive(Default)]
pub(crate) struct OnePerPath(Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>);

impl OnePerPath {
    /// Makes the call for `path` on a thread for blocking calls, once an earlier one has ended. If
    /// this is dropped, a call that has begun goes on.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        path: &Path,
        call: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, JoinError> {
        let turn = self.turn_for(path).lock_owned().await;
        spawn_blocking(move || {
            let result = call();
            drop(turn);
            result
        })
        .await
    }

    fn turn_for(&self, path: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(path).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(path.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn calls_that_hang_do_not_pile_up_and_the_next_one_follows_their_end() {
        let calls = OnePerPath::default();
        let begun = Arc::new(AtomicUsize::new(0));
        let (release, hang) = mpsc::channel::<()>();
        let hang = Arc::new(Mutex::new(hang));
        let path = Path::new("/x/hangs.sock");
        for _ in 0..20 {
            let begun = Arc::clone(&begun);
            let hang = Arc::clone(&hang);
            let call = calls.run(path, move || {
                begun.fetch_add(1, Ordering::SeqCst);
                let _ = hang.lock().unwrap().recv();
            });
            assert!(timeout(Duration::from_millis(20), call).await.is_err());
        }
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        // Another path is not affected.
        assert_eq!(calls.run(Path::new("/x/other.sock"), || 7).await.unwrap(), 7);
        drop(release);
        assert_eq!(calls.run(path, || 8).await.unwrap(), 8);
        // What has ended is forgotten; the thread of the first call may not have ended entirely.
        let is_forgotten = || {
            drop(calls.turn_for(Path::new("/x/third.sock")));
            calls.0.lock().unwrap().len() == 1
        };
        let begun = Instant::now();
        while !is_forgotten() {
            assert!(begun.elapsed() < Duration::from_mins(2), "a call that has ended is kept");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
