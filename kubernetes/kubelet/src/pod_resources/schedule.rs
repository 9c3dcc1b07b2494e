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

/// When the kubelet was asked, and what happened since then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Schedule {
    asked: Option<Instant>,
    /// The last allocation that the answer may lack.
    allocated: Option<Instant>,
}

impl Schedule {
    /// Whether to ask the kubelet before the answer is read.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.asked.is_none_or(|asked| now - asked >= PERIOD) || self.is_settled(now)
    }

    /// Records that the kubelet is asked now.
    pub(super) fn ask(&mut self, now: Instant) {
        self.asked = Some(now);
        if self.is_settled(now) {
            self.allocated = None;
        }
    }

    /// Records an allocation.
    pub(super) fn allocate(&mut self, now: Instant) {
        self.allocated = Some(now);
    }

    fn is_settled(&self, now: Instant) -> bool {
        self.allocated.is_some_and(|allocated| now - allocated >= SETTLING)
    }
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

    #[tokio::test(start_paused = true)]
    async fn the_kubelet_is_asked_every_ten_seconds_while_somebody_reads() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs_f64(seconds);
        let mut schedule = Schedule::default();
        assert!(schedule.is_due(start));
        schedule.ask(start);
        assert!(!schedule.is_due(at(9.9)) && schedule.is_due(at(10.0)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_allocation_is_looked_up_once_after_a_second() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs_f64(seconds);
        let mut schedule = Schedule::default();
        schedule.ask(start);
        schedule.allocate(at(2.0));
        assert!(!schedule.is_due(at(2.9)) && schedule.is_due(at(3.0)));
        schedule.ask(at(3.0));
        assert!(!schedule.is_due(at(12.9)));
        // An answer from the moment of the allocation may lack it.
        schedule.allocate(at(12.9));
        schedule.ask(at(13.0));
        assert!(!schedule.is_due(at(13.8)) && schedule.is_due(at(13.9)));
    }

    /// However many pods start, the kubelet is asked at most once a second.
    #[tokio::test(start_paused = true)]
    async fn many_allocations_do_not_ask_more_often() {
        let start = Instant::now();
        let mut schedule = Schedule::default();
        let mut asked = 0;
        for step in 0..600 {
            let now = start + Duration::from_millis(100 * step);
            schedule.allocate(now);
            if schedule.is_due(now) {
                schedule.ask(now);
                asked += 1;
            }
        }
        assert_eq!(asked, 6);
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
