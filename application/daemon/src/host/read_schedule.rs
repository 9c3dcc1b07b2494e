//! When to read the host again without a notification.
//!
//! After a failed read, and while the state of an adapter is temporary, the host is read again
//! after growing delays. A live host is also read every five minutes, because Windows does not
//! guarantee a notification of each change.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// The delay after the first failed or unsettled read. It doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest delay after a failed or unsettled read.
const LAST_RETRY: Duration = Duration::from_mins(1);
/// The interval of the safety reads. They bound the damage of a missed notification.
const SAFETY_READ: Duration = Duration::from_mins(5);

/// The kind of host that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostKind {
    /// The host that this program runs on.
    Live,
    /// An inventory file. It changes only with a notification.
    Inventory,
}

/// Why the host is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// The host was not read yet.
    Start,
    /// The host may have changed.
    Change,
    /// The last read failed, or an adapter was unsettled.
    Retry,
    /// The interval of the safety reads has passed.
    Safety,
}

/// The schedule of one host.
#[derive(Debug)]
pub(super) struct ReadSchedule {
    host: HostKind,
    retries: ExponentialBackoff,
}

impl ReadSchedule {
    /// A schedule for a host that was not read yet.
    #[must_use]
    pub(super) fn new(host: HostKind) -> ReadSchedule {
        ReadSchedule { host, retries: retries() }
    }

    /// How long to wait after a read, and the cause of the next read if nothing changes by
    /// then. `None`: only a change leads to the next read. The host `is_settled` if it will probably
    /// not change without a notification.
    #[must_use]
    pub(super) fn after(&mut self, cause: Cause, is_settled: bool) -> Option<(Duration, Cause)> {
        if cause == Cause::Change || is_settled {
            self.retries = retries();
        }
        if is_settled {
            return (self.host == HostKind::Live).then_some((SAFETY_READ, Cause::Safety));
        }
        Some((self.retries.next().unwrap_or(LAST_RETRY), Cause::Retry))
    }
}

fn retries() -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(FIRST_RETRY);
    delays.with_max_delay(LAST_RETRY).without_max_times().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The delays in seconds if each read finds this and nothing changes.
    fn delays(host: HostKind, is_settled: bool, count: usize) -> Vec<u64> {
        let mut schedule = ReadSchedule::new(host);
        let mut cause = Cause::Start;
        let mut delays = Vec::new();
        while let Some((delay, next)) = schedule.after(cause, is_settled)
            && delays.len() < count
        {
            delays.push(delay.as_secs());
            cause = next;
        }
        delays
    }

    #[test]
    fn a_settled_live_host_is_read_every_five_minutes_and_an_inventory_never() {
        assert_eq!(delays(HostKind::Live, true, 3), [300, 300, 300]);
        assert_eq!(delays(HostKind::Inventory, true, 3), [0; 0]);
    }

    #[test]
    fn an_unsettled_host_is_read_more_and_more_rarely_but_at_least_every_minute() {
        for host in [HostKind::Live, HostKind::Inventory] {
            assert_eq!(delays(host, false, 9), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        }
    }

    #[test]
    fn a_change_begins_the_retries_again() {
        let mut schedule = ReadSchedule::new(HostKind::Live);
        let mut next = |cause, is_settled| schedule.after(cause, is_settled).unwrap().0.as_secs();
        assert_eq!(next(Cause::Start, false), 1);
        assert_eq!(next(Cause::Retry, false), 2);
        assert_eq!(next(Cause::Change, false), 1, "a notification");
        assert_eq!(next(Cause::Retry, false), 2);
        assert_eq!(next(Cause::Retry, true), 300);
        assert_eq!(next(Cause::Safety, false), 1, "found by a safety read");
    }
}
