//! The delays between attempts, and which failures to log.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;
use tonic::Code;

/// The delay after the first failure. Each further failure doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// The longest delay while no kubelet listens. It is short, so that a kubelet that restarts is
/// found within a second even if its socket file stayed in place.
pub(crate) const UNREACHABLE_DELAY: Duration = Duration::from_millis(500);

/// The longest delay while a kubelet refuses the registration or does not answer.
pub(crate) const REFUSED_DELAY: Duration = Duration::from_secs(30);

/// The interval after which the same failure is logged again.
const LOG_INTERVAL: Duration = Duration::from_mins(10);

/// The delays after failures in a row: 0.1 s, then twice as long each time, up to
/// [`REFUSED_DELAY`]. They never end.
pub(crate) fn delays() -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(FIRST_DELAY);
    delays.with_max_delay(REFUSED_DELAY).without_max_times().build()
}

/// The kind of a failure. Two failures of one kind may have different texts: a kubelet may name the
/// socket, which is another one after each attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum FailureKind {
    /// A socket cannot be created.
    Bind(ErrorKind),
    /// A lock cannot be taken.
    Lock(ErrorKind),
    /// There is no kubelet, or its socket cannot be inspected.
    KubeletAbsent,
    /// The kubelet cannot be reached.
    Connect(ErrorKind),
    /// The connection to the kubelet was lost.
    Lost,
    /// The kubelet does not answer.
    Timeout,
    /// The kubelet refuses with this code, and there is this hint about its text.
    Refused(Code, Option<&'static str>),
}

/// Limits repeated log lines: of failures of one kind, it lets the first one through, and another
/// one after each [`LOG_INTERVAL`].
///
/// It remembers every kind and not only the last one, because two different failures can alternate.
/// It measures time and does not count, because the delays between failures are 0.1 to 30 s.
#[derive(Debug, Default)]
pub(crate) struct LogLimiter(HashMap<FailureKind, Instant>);

impl LogLimiter {
    /// Whether to log a failure of this kind now.
    pub(crate) fn should_log(&mut self, kind: FailureKind, now: Instant) -> bool {
        self.0.retain(|_, logged| now < *logged + LOG_INTERVAL);
        let is_new = !self.0.contains_key(&kind);
        if is_new {
            self.0.insert(kind, now);
        }
        is_new
    }

    /// Forgets all failures, after a success. The next failure is logged.
    pub(crate) fn reset(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit() {
        let delays: Vec<u128> = delays().take(40).map(|delay| delay.as_millis()).collect();
        assert_eq!(delays[..10], [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000]);
        assert_eq!(delays[39], 30000);
    }

    #[test]
    fn logs_a_new_failure_immediately_and_repetitions_every_ten_minutes() {
        let start = Instant::now();
        let mut limiter = LogLimiter::default();
        let [a, b] = [FailureKind::Timeout, FailureKind::Lost];
        let logged: Vec<u64> = (0..1000)
            .filter(|second| limiter.should_log(a, start + Duration::from_secs(*second)))
            .collect();
        assert_eq!(logged, [0, 600]);
        assert!(limiter.should_log(b, start));
        assert!(!limiter.should_log(b, start) && !limiter.should_log(a, start));
        limiter.reset();
        assert!(limiter.should_log(b, start));
    }
}
