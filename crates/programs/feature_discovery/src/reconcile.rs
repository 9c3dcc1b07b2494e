//! Which changes of the node object are due. No I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use cluster::{ClusterError, FailureKind, Node, has_applied, has_taint};
use process::logging::Repeated;
use report::{Condition, Labels};
use strum::VariantArray as _;
use tokio::time::Instant;

use crate::desired::Desired;
use crate::monitoring::Purpose;

/// The field manager of labels and conditions.
pub const MANAGER: &str = "directx-feature-discovery";

/// How long the same change is not repeated. Another program may undo it each time.
const REPEAT: Duration = Duration::from_secs(30);
/// How long the conditions stay before they change again, also while a device flaps.
const SETTLED: Duration = Duration::from_secs(10);
/// How long the words of other programs in a condition stay. A kubelet may name another socket each
/// time it refuses a registration, and each write goes to everyone who watches the node.
const WORDS: Duration = Duration::from_mins(5);
/// How long the conditions stay at least although nothing changes; then they are written again, so
/// that those of a program that no longer runs can be recognized by their age. It is long, because
/// each write goes to everyone who watches the nodes of the cluster.
const HEARTBEAT: Duration = Duration::from_hours(1);
/// How long a condition that a policy refuses is left out.
const REFUSED: Duration = Duration::from_mins(5);
/// The longest delay. A node must not be wrong for long after the API server has returned.
const LONGEST: Duration = Duration::from_mins(1);
/// The shortest delay after a failed attempt.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// A change of the node object.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Apply the labels.
    Labels(Labels),
    /// Apply the conditions.
    Conditions(Vec<Condition>),
    /// Remove the taint with this key.
    RemoveTaint(String),
}

impl Change {
    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Change::Labels(_) => Purpose::Labels,
            Change::Conditions(_) => Purpose::Condition,
            Change::RemoveTaint(_) => Purpose::Taints,
        }
    }

    /// Whether it changes the same to the same. The words of other programs do not count.
    fn is_same_as(&self, other: &Change) -> bool {
        match (self, other) {
            (Change::Labels(this), Change::Labels(other)) => this == other,
            (Change::Conditions(this), Change::Conditions(other)) => say_same(this, other),
            (Change::RemoveTaint(this), Change::RemoveTaint(other)) => this == other,
            _ => false,
        }
    }
}

fn say_same(these: &[Condition], others: &[Condition]) -> bool {
    these.len() == others.len()
        && these.iter().zip(others).all(|(this, other)| this.says_same_as(other))
}

/// What is to be done about a node object.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// The changes that are due now.
    pub(crate) changes: Vec<Change>,
    /// When the next change is due, if none becomes necessary before.
    pub(crate) next: Option<Instant>,
    /// The purposes whose change is necessary and has failed.
    pub(crate) failing: Vec<Purpose>,
}

/// The attempts to reach the API server, for each purpose.
pub(crate) struct Attempts {
    by_purpose: BTreeMap<Purpose, Attempt>,
    heartbeat: Instant,
    /// Until when only the first condition is written, because the server refused the others: its
    /// policy is of an earlier version.
    only_first_condition: Option<Instant>,
}

/// The attempts for one purpose.
pub(crate) struct Attempt {
    delays: ExponentialBackoff,
    /// Not before this time, since the last one failed.
    next: Option<Instant>,
    failures: Repeated<FailureKind>,
    /// Whether a request is on its way.
    pub(crate) is_running: bool,
    /// The last change of the node object, and when it was made.
    last: Option<(Change, Instant)>,
}

/// What is due for a node that is `node` and should be as `desired`. `startup_taint` is the key of
/// the taint to remove once pods can use the devices.
pub(crate) fn reconcile(
    node: &Node,
    desired: &Desired,
    startup_taint: Option<&str>,
    attempts: &Attempts,
    now: Instant,
) -> Due {
    let labels = desired.labels.as_ref().filter(|labels| !has_applied(node, MANAGER, labels));
    let labels = labels.map(|labels| (Change::Labels(labels.clone()), now));
    let taint = startup_taint.filter(|key| desired.waits_for.is_none() && has_taint(node, key));
    let taint = taint.map(|key| (Change::RemoveTaint(key.to_owned()), now));
    let conditions = conditions(node, desired, attempts, now);
    let refused = attempts.only_first_condition.filter(|until| *until > now);
    let mut due = Due { next: refused, ..Due::default() };
    for (change, wanted_at) in labels.into_iter().chain(conditions).chain(taint) {
        let attempt = attempts.of(change.purpose());
        if attempt.is_failing() && wanted_at <= now {
            due.failing.push(change.purpose());
        }
        if attempt.is_running {
            continue;
        }
        let at = attempt.due_change(&change, wanted_at);
        if at <= now {
            due.changes.push(change);
        } else {
            due.next = due.next.into_iter().chain([at]).min();
        }
    }
    due
}

/// The conditions to write, and when at the earliest.
fn conditions(
    node: &Node,
    desired: &Desired,
    attempts: &Attempts,
    now: Instant,
) -> Option<(Change, Instant)> {
    let mut wanted = desired.conditions.clone();
    if attempts.only_first_condition.is_some_and(|until| now < until) {
        wanted.truncate(1);
    }
    if wanted.is_empty() {
        return None;
    }
    let has = |conditions: &[Condition]| conditions.iter().all(|one| has_condition(node, one));
    let at = match &attempts.of(Purpose::Condition).last {
        _ if has(&wanted) => attempts.heartbeat,
        // Only the words of other programs are new.
        Some((Change::Conditions(last), made_at)) if say_same(last, &wanted) && has(last) => {
            *made_at + WORDS
        }
        _ => now,
    };
    Some((Change::Conditions(wanted), at))
}

/// Whether `node` has the condition already, with all its words.
pub(crate) fn has_condition(node: &Node, wanted: &Condition) -> bool {
    cluster::condition(node, wanted.kind.name()).is_some_and(|found| {
        found.status == wanted.status.to_string()
            && found.reason.as_deref() == Some(wanted.reason)
            && found.message.as_deref() == Some(&*wanted.message.to_string())
    })
}

impl Attempts {
    pub(crate) fn new() -> Attempts {
        let attempts = Purpose::VARIANTS.iter().map(|purpose| (*purpose, Attempt::new()));
        Attempts {
            by_purpose: attempts.collect(),
            heartbeat: next_heartbeat(),
            only_first_condition: None,
        }
    }

    pub(crate) fn of(&self, purpose: Purpose) -> &Attempt {
        self.by_purpose.get(&purpose).expect("there is one for each purpose")
    }

    pub(crate) fn of_mut(&mut self, purpose: Purpose) -> &mut Attempt {
        self.by_purpose.get_mut(&purpose).expect("there is one for each purpose")
    }

    /// The node is another object from now on, which has none of the changes.
    pub(crate) fn forget_changes(&mut self) {
        self.by_purpose.values_mut().for_each(|attempt| attempt.last = None);
    }

    /// The server has accepted the change.
    pub(crate) fn accepted(&mut self, change: Change, now: Instant) {
        if matches!(change, Change::Conditions(_)) {
            self.heartbeat = next_heartbeat();
        }
        let purpose = change.purpose();
        self.of_mut(purpose).last = Some((change, now));
    }

    /// The server has refused the change.
    pub(crate) fn refused(&mut self, change: &Change, error: &ClusterError, now: Instant) {
        if let Change::Conditions(conditions) = change
            && conditions.len() > 1
            && error.is_of_policy()
        {
            self.only_first_condition = Some(now + REFUSED);
        }
    }
}

impl Attempt {
    pub(crate) fn new() -> Attempt {
        Attempt {
            delays: growing(FIRST_DELAY),
            next: None,
            failures: Repeated::default(),
            is_running: false,
            last: None,
        }
    }

    /// When to make an attempt that is due at `at`.
    pub(crate) fn due(&self, at: Instant) -> Instant {
        self.next.map_or(at, |next| next.max(at))
    }

    /// When to make this change of the node object, which is due at `at`.
    fn due_change(&self, change: &Change, at: Instant) -> Instant {
        let Some((last, made_at)) = &self.last else { return self.due(at) };
        let pause = match change {
            change if last.is_same_as(change) => REPEAT,
            Change::Conditions(_) => SETTLED,
            _ => Duration::ZERO,
        };
        self.due(at.max(*made_at + pause))
    }

    /// Whether the last attempt failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.next.is_some()
    }

    /// An attempt succeeded. Returns whether the one before failed.
    pub(crate) fn succeeded(&mut self) -> bool {
        self.delays = growing(FIRST_DELAY);
        self.failures = Repeated::default();
        self.next.take().is_some()
    }

    /// An attempt failed in this way, after which the server asks for a pause. Returns how long to
    /// wait, if that is to be logged.
    pub(crate) fn failed(
        &mut self,
        kind: FailureKind,
        pause: Option<Duration>,
        now: Instant,
    ) -> Option<Duration> {
        let delay = delay(&mut self.delays, pause);
        self.failed_until(kind, now + delay).then_some(delay)
    }

    /// An attempt failed in this way, and the next one is made at `next`. Returns whether that is
    /// to be logged.
    pub(crate) fn failed_until(&mut self, kind: FailureKind, next: Instant) -> bool {
        self.next = Some(next);
        self.failures.is_due(kind)
    }
}

/// Delays of which the first is at least `first` and less than twice as long. They double up to a
/// minute, and never end. They are random, so that the programs of a thousand nodes do not return
/// at the same moment.
pub(crate) fn growing(first: Duration) -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(first).with_max_delay(LONGEST / 2);
    delays.with_jitter().without_max_times().build()
}

/// The next delay; longer by what the server asks for.
pub(crate) fn delay(delays: &mut ExponentialBackoff, wanted: Option<Duration>) -> Duration {
    delays.next().unwrap_or(LONGEST) + wanted.unwrap_or_default().min(LONGEST)
}

/// When the next heartbeat is due: at a random time, so that the nodes of a cluster do not write at
/// the same time.
fn next_heartbeat() -> Instant {
    Instant::now() + HEARTBEAT.mul_f32(1.0 + 0.25 * fastrand::f32())
}

#[cfg(test)]
mod tests;
