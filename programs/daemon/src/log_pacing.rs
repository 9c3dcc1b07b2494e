//! Limits how often one kind of log line repeats.
//!
//! A client or a kubelet that misbehaves can cause the same line thousands of times a
//! second, which hides every other line and fills the disk. Lines from one place of the
//! code are one kind. A kind may come in a burst; after that, its lines are suppressed
//! until the period ends. A later line is preceded by a report of how many are missing.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// How many lines of one kind are written in a period: more than a node has devices, and
/// far fewer than fill a disk.
const BURST: u32 = 100;

/// The period.
const PERIOD: Duration = Duration::from_secs(60);

/// The kinds of lines that were written, by what tells them apart.
pub(crate) struct Pacing<K> {
    kinds: HashMap<K, Kind>,
    /// Missing lines of periods that have ended, which no line has reported yet.
    missing: Vec<Missing>,
}

struct Kind {
    /// When its period began.
    began: Duration,
    written: u32,
    missing: Missing,
}

/// Lines that were suppressed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Missing {
    /// How many.
    pub(crate) count: u64,
    /// The text of their kind.
    pub(crate) message: String,
}

impl<K: Eq + Hash> Pacing<K> {
    pub(crate) fn new() -> Self {
        Pacing { kinds: HashMap::new(), missing: Vec::new() }
    }

    /// Decides about a line of `kind` at `now`, the time since any origin. `None` suppresses
    /// the line; otherwise these missing lines are to be reported before it.
    pub(crate) fn admit(
        &mut self,
        kind: K,
        now: Duration,
        message: impl FnOnce() -> String,
    ) -> Option<Vec<Missing>> {
        let kind = self.kinds.entry(kind).or_insert_with(|| Kind {
            began: now,
            written: 0,
            missing: Missing { count: 0, message: message() },
        });
        kind.end_period(now, &mut self.missing);
        if kind.written == BURST {
            kind.missing.count += 1;
            return None;
        }
        kind.written += 1;
        for kind in self.kinds.values_mut() {
            kind.end_period(now, &mut self.missing);
        }
        Some(std::mem::take(&mut self.missing))
    }
}

impl Kind {
    /// Begins a new period if the last one has ended.
    fn end_period(&mut self, now: Duration, missing: &mut Vec<Missing>) {
        if now.saturating_sub(self.began) < PERIOD {
            return;
        }
        (self.began, self.written) = (now, 0);
        if self.missing.count > 0 {
            missing.push(self.missing.clone());
            self.missing.count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines `count` times; how many were written, and what was reported before them.
    fn lines(
        pacing: &mut Pacing<&'static str>,
        kind: &'static str,
        count: u32,
        second: u64,
    ) -> (usize, Vec<(u64, String)>) {
        let now = Duration::from_secs(second);
        let admitted: Vec<Vec<Missing>> =
            (0..count).filter_map(|_| pacing.admit(kind, now, || kind.to_owned())).collect();
        let reports = admitted.iter().flatten().map(|m| (m.count, m.message.clone()));
        (admitted.len(), reports.collect())
    }

    #[test]
    fn a_flood_is_written_in_part_and_its_rest_is_reported_once() {
        let mut pacing = Pacing::new();
        assert_eq!(lines(&mut pacing, "refused", 250, 0), (100, vec![]));
        assert_eq!(lines(&mut pacing, "refused", 7, 59), (0, vec![]));
        // Another kind is written meanwhile, and reports nothing before the period has ended.
        assert_eq!(lines(&mut pacing, "registered", 1, 59), (1, vec![]));
        let report = (157, "refused".to_owned());
        assert_eq!(lines(&mut pacing, "registered", 2, 60), (2, vec![report]));
        assert_eq!(lines(&mut pacing, "refused", 101, 61), (100, vec![]));
        let report = (1, "refused".to_owned());
        assert_eq!(lines(&mut pacing, "refused", 1, 200), (1, vec![report]));
    }

    #[test]
    fn a_clock_that_stands_still_does_not_matter() {
        let mut pacing = Pacing::new();
        assert_eq!(lines(&mut pacing, "a", 100, 500), (100, vec![]));
        assert_eq!(lines(&mut pacing, "a", 1, 0), (0, vec![]));
    }
}
