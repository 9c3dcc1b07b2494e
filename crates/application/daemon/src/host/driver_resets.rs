//! How often the driver of each device was reset (TDR), for `unhealthyAfterResets`.

use std::sync::Arc;
use std::time::Duration;

use devices::Luid;
use tokio::time::{Instant, sleep_until};

use crate::host::background_query::BackgroundQuery;

/// Reads the reset counters of adapters. It blocks, perhaps forever.
pub type ReadResets = Arc<dyn Fn(&[Luid]) -> Vec<(Luid, u64)> + Send + Sync>;

/// The time between two readings.
const INTERVAL: Duration = Duration::from_secs(10);

/// Asks the host for the reset counters of its devices.
pub(crate) struct ResetReader {
    read: Option<ReadResets>,
    query: BackgroundQuery<Vec<(Luid, u64)>>,
    due: Instant,
}

impl ResetReader {
    /// A reader that asks `read`, or never answers.
    #[must_use]
    pub(crate) fn new(read: Option<ReadResets>) -> ResetReader {
        let effect = "resets do not make devices unhealthy";
        let query = BackgroundQuery::new("driver resets", effect);
        ResetReader { read, query, due: Instant::now() }
    }

    /// The counters of these adapters, every ten seconds. Adapters that cannot be read are left
    /// out.
    pub(crate) async fn next(&mut self, adapters: impl FnOnce() -> Vec<Luid>) -> Vec<(Luid, u64)> {
        let Some(read) = &self.read else { return std::future::pending().await };
        if !self.query.is_running() {
            sleep_until(self.due).await;
            self.due = Instant::now() + INTERVAL;
            let read = Arc::clone(read);
            let adapters = adapters();
            self.query.start(move || read(&adapters));
        }
        self.query.answer().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn the_counters_are_read_again_after_ten_seconds() {
        let readings = AtomicU64::new(0);
        let mut reader = ResetReader::new(Some(Arc::new(move |adapters: &[Luid]| {
            let reading = readings.fetch_add(1, Ordering::SeqCst);
            adapters.iter().map(|luid| (*luid, reading)).collect()
        })));
        assert_eq!(reader.next(|| vec![Luid(7)]).await, [(Luid(7), 0)]);
        // The clock is paused only now: it would run while the thread answers.
        tokio::time::pause();
        let waited = tokio::time::timeout(INTERVAL / 2, reader.next(|| vec![Luid(8)])).await;
        assert!(waited.is_err());
        assert_eq!(reader.next(|| vec![Luid(9)]).await, [(Luid(9), 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_without_counters_is_not_asked() {
        let mut reader = ResetReader::new(None);
        let waited = tokio::time::timeout(Duration::from_hours(1), reader.next(Vec::new)).await;
        assert!(waited.is_err());
    }
}
