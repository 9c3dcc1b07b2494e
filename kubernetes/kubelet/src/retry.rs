//! How long to wait between attempts, and which of them to log.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// The delay after the first failure; each further one doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// The longest delay while nobody listens: short, so that a kubelet which comes back
/// is found within a second even where its socket was left in place.
const UNREACHABLE_DELAY: Duration = Duration::from_millis(500);

/// The longest delay while a kubelet answers and says no, or does not answer at all.
const REFUSED_DELAY: Duration = Duration::from_secs(30);

/// The interval after which a failure is logged again; each further one doubles it.
const FIRST_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The longest interval between two logs of one failure.
const LONGEST_LOG_INTERVAL: Duration = Duration::from_secs(600);

/// What an attempt failed with, as far as the next delay depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// Nobody listens, or nothing could be made to listen on.
    Unreachable,
    /// There is a kubelet and it does not want us, or does not answer.
    Refused,
}

/// Counts failures and gives the delay before the next attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn after(&mut self, failure: Failure) -> Duration {
        let longest = match failure {
            Failure::Unreachable => UNREACHABLE_DELAY,
            Failure::Refused => REFUSED_DELAY,
        };
        let delay = FIRST_DELAY.saturating_mul(1 << self.failures.min(16)).min(longest);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// Lets the first of a row of equal failures through, then one now and then, also where
/// several kinds of them take turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogPacer {
    /// The oldest first.
    logged: VecDeque<Logged>,
}

/// How many kinds of failures are told apart. With more than that taking turns, each is
/// logged every time.
const KINDS: usize = 8;

#[derive(Clone, Debug)]
struct Logged {
    text: String,
    next: Instant,
    interval: Duration,
}

impl LogPacer {
    /// Whether a failure that reads `text` is to be logged now.
    pub(crate) fn lets_through(&mut self, text: &str, now: Instant) -> bool {
        if let Some(logged) = self.logged.iter_mut().find(|logged| logged.text == text) {
            let due = now >= logged.next;
            if due {
                logged.interval = (logged.interval * 2).min(LONGEST_LOG_INTERVAL);
                logged.next = now + logged.interval;
            }
            return due;
        }
        if self.logged.len() == KINDS {
            self.logged.pop_front();
        }
        let interval = FIRST_LOG_INTERVAL;
        self.logged.push_back(Logged { text: text.to_owned(), next: now + interval, interval });
        true
    }

    /// Starts anew, after a success: the next failure is news.
    pub(crate) fn reset(&mut self) {
        self.logged.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_to_a_limit_that_depends_on_the_failure() {
        let mut backoff = Backoff::default();
        let unreachable: Vec<u128> =
            (0..5).map(|_| backoff.after(Failure::Unreachable).as_millis()).collect();
        assert_eq!(unreachable, [100, 200, 400, 500, 500]);
        backoff.reset();
        let refused: Vec<u128> =
            (0..40).map(|_| backoff.after(Failure::Refused).as_millis()).collect();
        assert_eq!(refused[..10], [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000]);
        assert_eq!(refused[39], 30000);
    }

    #[test]
    fn a_failure_is_logged_at_growing_intervals_and_a_new_one_at_once() {
        let start = Instant::now();
        let mut pacer = LogPacer::default();
        let logged: Vec<u64> = (0..1000)
            .filter(|second| pacer.lets_through("a", start + Duration::from_secs(*second)))
            .collect();
        assert_eq!(logged, [0, 10, 30, 70, 150, 310, 630]);
        assert!(pacer.lets_through("b", start));
        assert!(!pacer.lets_through("b", start) && !pacer.lets_through("a", start));
        pacer.reset();
        assert!(pacer.lets_through("b", start));
    }
}
