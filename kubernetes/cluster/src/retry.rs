//! Delays between attempts: they double, and are random, so that a thousand nodes do not return
//! at the same moment.
//!
//! An API server that ends also ends the watches of all nodes at the same moment, so the first
//! delay counts most.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// How many times longer than the server's first answer a program waits at most before it writes.
const PATIENCE: u32 = 4;
/// The first limit of a delay.
const FIRST: Duration = Duration::from_secs(1);
/// The longest delay. A node must not be wrong for long after the API server has returned.
const LONGEST: Duration = Duration::from_secs(60);

/// The delays of attempts that fail one after another.
pub struct Retry {
    first: Duration,
    failures: u32,
    random: RandomState,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry::from_limit(FIRST)
    }
}

impl Retry {
    /// Delays whose first limit is `first`.
    #[must_use]
    pub fn from_limit(first: Duration) -> Retry {
        Retry { first, failures: 0, random: RandomState::new() }
    }

    /// The delay before the next attempt: between an eighth of the limit and the limit, which
    /// doubles with each failure; at least `wanted`, which the server may ask for.
    pub fn failed(&mut self, wanted: Option<Duration>) -> Duration {
        let limit = self.first.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let delay = limit / 8 + random_part(&self.random, self.failures, limit / 8 * 7);
        delay + wanted.unwrap_or_default().min(LONGEST)
    }

    /// An attempt succeeded.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

/// The delay before the first change by a program whose server took `answer_time` to answer. A server
/// that many programs use at the same moment answers late: the more there are, the more their
/// changes are spread.
#[must_use]
pub fn first_delay(answer_time: Duration) -> Duration {
    random_time(answer_time.saturating_mul(PATIENCE).min(LONGEST))
}

/// A random time below `limit`.
#[must_use]
pub(crate) fn random_time(limit: Duration) -> Duration {
    random_part(&RandomState::new(), 0, limit)
}

fn random_part(random: &RandomState, attempt: u32, limit: Duration) -> Duration {
    let part = u32::try_from(random.hash_one(attempt) % 1000).unwrap_or(0);
    limit * part / 1000
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
            assert!(delay >= limit / 8 && delay <= limit, "{delay:?} of {limit:?}");
        }
        retry.succeeded();
        assert!(retry.failed(None) <= FIRST);
    }

    #[test]
    fn the_first_changes_are_spread_by_the_answer_time_of_the_server() {
        assert_eq!(first_delay(Duration::ZERO), Duration::ZERO);
        for (seconds, limit) in [(1, 4), (10, 40), (100, 60)] {
            let delays: std::collections::HashSet<Duration> =
                (0..20).map(|_| first_delay(Duration::from_secs(seconds))).collect();
            assert!(delays.len() > 10, "{delays:?}");
            assert!(delays.iter().all(|delay| *delay <= Duration::from_secs(limit)), "{delays:?}");
        }
    }

    #[test]
    fn the_server_can_ask_for_more_time_and_two_programs_wait_differently() {
        let wanted = Duration::from_secs(7);
        assert!(Retry::default().failed(Some(wanted)) >= wanted);
        let delays: std::collections::HashSet<Duration> =
            (0..20).map(|_| Retry::default().failed(None)).collect();
        assert!(delays.len() > 10, "{delays:?}");
        // The quarters of the limit; each of them lacks all of 200 with a chance of less than 1e-13.
        let quarter = |delay: Duration| delay.as_millis() / 250;
        let quarters: std::collections::HashSet<u128> =
            (0..200).map(|_| quarter(Retry::default().failed(None)).min(3)).collect();
        assert_eq!(quarters.len(), 4, "{quarters:?}");
    }
}
