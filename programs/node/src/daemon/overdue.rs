//! When to report that a call to Windows has not returned: after a limit, then at growing
//! intervals. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// The limit. Calls take milliseconds, and seconds while a driver starts.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest interval between two reports.
const LONGEST_INTERVAL: Duration = Duration::from_secs(600);

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub struct Overdue {
    since: Instant,
    report_after: Duration,
}

impl Overdue {
    /// A call that begins at `since`.
    #[must_use]
    pub fn new(since: Instant) -> Overdue {
        Overdue { since, report_after: LIMIT }
    }

    /// When to report the call, if it has not returned by then.
    #[must_use]
    pub fn due(&self) -> Instant {
        self.since + self.report_after
    }

    /// How long the call has taken at `now`, when it is reported.
    pub fn report(&mut self, now: Instant) -> Duration {
        let taken = now - self.since;
        self.report_after = taken + taken.min(LONGEST_INTERVAL);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_after_the_limit_and_at_growing_intervals() {
        let start = Instant::now();
        let mut overdue = Overdue::new(start);
        let reports: Vec<u64> = (0..9)
            .map(|_| {
                let now = overdue.due();
                overdue.report(now).as_secs()
            })
            .collect();
        assert_eq!(reports, [10, 20, 40, 80, 160, 320, 640, 1240, 1840]);
    }
}
