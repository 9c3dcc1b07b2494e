//! When to ask the kubelet again, and what to log about it: decisions without I/O.

use std::time::Duration;

use tokio::time::Instant;

use super::error::FailureReason;

/// How old an answer may get while it is read. Pods come and go more slowly than Prometheus
/// usually scrapes.
const PERIOD: Duration = Duration::from_secs(10);

/// How long after an allocation the kubelet is asked again. It records an allocation after the
/// plugin's answer, and pods often start together.
const SETTLING: Duration = Duration::from_secs(1);

/// How long an answer is used while the kubelet gives no newer one: longer than a kubelet takes to
/// restart. After that, its pods may be gone.
pub(super) const MAX_AGE: Duration = Duration::from_secs(5 * 60);

/// Whether to ask the kubelet before its last answer is read. `asked` is when it was asked for that
/// answer, and `allocated` when a device was allocated the last time.
pub(super) fn is_due(asked: Option<Instant>, allocated: Option<Instant>, now: Instant) -> bool {
    let Some(asked) = asked else { return true };
    let lacks_allocation = allocated.is_some_and(|allocated| {
        let recorded = allocated + SETTLING;
        asked < recorded && recorded <= now
    });
    lacks_allocation || now - asked >= PERIOD
}

/// The last outcome, for the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    /// The kubelet was not asked yet.
    Unknown,
    /// The kubelet answered.
    Working,
    /// The kubelet has no endpoint, which is normal for old kubelets.
    Missing,
    /// Anything else failed.
    Failing,
}

impl Condition {
    /// The condition after an outcome: `None` if the kubelet answered.
    pub(super) fn of(failure: Option<FailureReason>) -> Condition {
        match failure {
            None => Condition::Working,
            Some(FailureReason::Missing) => Condition::Missing,
            Some(_) => Condition::Failing,
        }
    }

    /// Whether the step from this condition to the next is worth a line in the log: once when it
    /// begins to fail, once when it works again.
    pub(super) fn is_news(self, next: Condition) -> bool {
        self != next && (self, next) != (Condition::Unknown, Condition::Working)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelet_is_asked_every_ten_seconds_while_somebody_reads() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs_f64(seconds);
        assert!(is_due(None, None, start));
        assert!(!is_due(Some(start), None, at(9.9)) && is_due(Some(start), None, at(10.0)));
    }

    #[test]
    fn an_allocation_is_looked_up_once_after_a_second() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs_f64(seconds);
        let allocated = Some(at(2.0));
        assert!(
            !is_due(Some(start), allocated, at(2.9)) && is_due(Some(start), allocated, at(3.0))
        );
        assert!(!is_due(Some(at(3.0)), allocated, at(12.9)));
        // An answer from the moment of the allocation may lack it.
        assert!(is_due(Some(at(2.1)), allocated, at(3.0)));
    }

    /// However many pods start, the kubelet is asked at most once a second.
    #[test]
    fn many_allocations_do_not_ask_more_often() {
        let start = Instant::now();
        let (mut asked, mut times) = (None, 0);
        for step in 0..600 {
            let now = start + Duration::from_millis(100 * step);
            if is_due(asked, Some(now), now) {
                asked = Some(now);
                times += 1;
            }
        }
        assert_eq!(times, 6);
    }

    #[test]
    fn only_changes_are_logged() {
        use Condition::{Failing, Missing, Unknown, Working};
        for (before, after) in
            [(Unknown, Missing), (Working, Failing), (Missing, Working), (Missing, Failing)]
        {
            assert!(before.is_news(after), "{before:?} {after:?}");
        }
        for (before, after) in
            [(Unknown, Working), (Working, Working), (Missing, Missing), (Failing, Failing)]
        {
            assert!(!before.is_news(after), "{before:?} {after:?}");
        }
    }
}
