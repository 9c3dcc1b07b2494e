//! Detects a kubelet that keeps closing the `ListAndWatch` stream of a resource.
//!
//! One end is normal: the kubelet restarted. Many within a minute mean that the resource has no
//! devices most of the time, although every registration succeeds.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::retry::LogLimiter;

/// How many ends within [`PERIOD`] are not normal. A kubelet that its service manager restarts
/// after each failure ends fewer.
const TOO_MANY: usize = 5;

const PERIOD: Duration = Duration::from_secs(60);

/// The ends of one resource's streams.
#[derive(Debug, Default)]
pub(crate) struct StreamEnds {
    /// The last ones, oldest first, at most [`TOO_MANY`].
    recent: VecDeque<Instant>,
    /// How many ends there were since they were last normal.
    count: u64,
    limiter: LogLimiter,
}

impl StreamEnds {
    /// Counts an end. If a warning is due, it returns how many ends there were.
    pub(crate) fn add(&mut self, now: Instant) -> Option<u64> {
        while self.recent.front().is_some_and(|&end| now >= end + PERIOD) {
            self.recent.pop_front();
        }
        if self.recent.is_empty() {
            self.count = 0;
            self.limiter.reset();
        }
        if self.recent.len() == TOO_MANY {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.count += 1;
        let is_due = self.recent.len() == TOO_MANY && self.limiter.should_log("", now);
        is_due.then_some(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of ends in seconds for which a warning is due, with the reported number.
    fn warnings(ends: impl IntoIterator<Item = f64>) -> Vec<(f64, u64)> {
        let start = Instant::now();
        let mut streams = StreamEnds::default();
        let warn = |second| Some((second, streams.add(start + Duration::from_secs_f64(second))?));
        ends.into_iter().filter_map(warn).collect()
    }

    #[test]
    fn restarts_of_the_kubelet_are_normal() {
        assert_eq!(warnings((0..100).map(|n| f64::from(n) * 16.0)), []);
        assert_eq!(warnings([0.0, 1.0, 2.0, 3.0, 70.0, 71.0, 72.0, 73.0]), []);
    }

    #[test]
    fn warns_of_a_series_at_growing_intervals() {
        let half_seconds = (0..400).map(|n| f64::from(n) / 2.0);
        let expected = [(2.0, 5), (12.0, 25), (32.0, 65), (72.0, 145), (152.0, 305)];
        assert_eq!(warnings(half_seconds), expected);
    }

    #[test]
    fn a_second_series_is_reported_at_once() {
        let series = |start: u32| (start..start + 5).map(f64::from);
        assert_eq!(warnings(series(0).chain(series(100))), [(4.0, 5), (104.0, 5)]);
    }
}
