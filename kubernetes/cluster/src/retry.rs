//! Delays between attempts: they double, and are random, so that a thousand nodes do not return
//! at the same moment.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first delay.
const FIRST: Duration = Duration::from_secs(1);
/// The longest delay. A node must not be wrong for long after the API server has returned.
const LONGEST: Duration = Duration::from_secs(60);

/// The delays of attempts that fail one after another.
#[derive(Default)]
pub struct Retry {
    failures: u32,
    random: RandomState,
}

impl Retry {
    /// The delay before the next attempt: between half of the limit and the limit, which doubles
    /// with each failure; at least `wanted`, which the server may ask for.
    pub fn failed(&mut self, wanted: Option<Duration>) -> Duration {
        let limit = FIRST.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures += 1;
        let part = self.random.hash_one(self.failures) % 1000;
        let delay = limit / 2 + limit / 2 * u32::try_from(part).unwrap_or(0) / 1000;
        delay + wanted.unwrap_or_default().min(LONGEST)
    }

    /// An attempt succeeded.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_minute_and_begin_again_after_a_success() {
        let mut retry = Retry::default();
        for limit in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let delay = retry.failed(None);
            let limit = Duration::from_secs(limit);
            assert!(delay >= limit / 2 && delay <= limit, "{delay:?} of {limit:?}");
        }
        retry.succeeded();
        assert!(retry.failed(None) <= FIRST);
    }

    #[test]
    fn the_server_can_ask_for_more_time_and_two_programs_wait_differently() {
        let wanted = Duration::from_secs(7);
        assert!(Retry::default().failed(Some(wanted)) >= wanted);
        let delays: std::collections::HashSet<Duration> =
            (0..20).map(|_| Retry::default().failed(None)).collect();
        assert!(delays.len() > 10, "{delays:?}");
    }
}
