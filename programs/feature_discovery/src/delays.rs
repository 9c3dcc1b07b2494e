//! Random delays, so that the programs of a thousand nodes do not return at the same moment.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The longest delay. A node must not be wrong for long after the API server has returned.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// Delays of which the first is at least `first` and less than twice as long. They double up to a
/// minute, and never end.
pub(crate) fn growing(first: Duration) -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(first).with_max_delay(LONGEST / 2);
    delays.with_jitter().without_max_times().build()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn delays_grow_to_a_minute_and_are_random() {
        let mut delays = growing(Duration::from_millis(500));
        for limit in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let (delay, limit) = (delays.next().unwrap(), Duration::from_secs(limit));
            assert!(delay >= limit / 2 && delay <= limit, "{delay:?} of {limit:?}");
        }
        let first = || growing(Duration::from_millis(500)).next();
        let first: HashSet<Option<Duration>> = (0..20).map(|_| first()).collect();
        assert!(first.len() > 10, "{first:?}");
    }
}
