//! Keeps the node object up to date with the devices.
//!
//! It follows the devices and the node object, and sends as few requests as possible. A failed request
//! is retried after growing, random delays without limit: failures of the API server never end this
//! program.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use cluster::{Client, ClusterError, Node, NodeWatch, WatchEvent, is_older};
use devices::DeviceSet;
use devices::node_report::{DeviceEvent, device_events};
use kubelet::OutdatedContainer;
use node::daemon::change_log::RepeatedText;
use node::daemon::config_reload::ReloadStatus;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::event_queue::EventQueue;
use crate::monitoring::{Purpose, Requests};
use crate::node_state::{Change, Desired};
use crate::plugin_status::PluginStatus;

/// When the next heartbeat is due: at a random time, so that the nodes of a cluster do not write at
/// the same time.
fn next_heartbeat() -> Instant {
    Instant::now() + HEARTBEAT.mul_f32(0.8 + 0.2 * fastrand::f32())
}

#[cfg(test)]
mod tests;

/// How long the same change is not repeated. Another program may undo it each time.
const REPEAT: Duration = Duration::from_secs(30);
/// How long a condition stays before it changes again, also while a device flaps.
const SETTLED: Duration = Duration::from_secs(10);
/// How often at least the condition is written although nothing changes, so that one of a program that no
/// longer runs can be recognized by its age.
const HEARTBEAT: Duration = Duration::from_secs(300);
/// The longest delay. A node must not be wrong for long after the API server has returned.
const LONGEST: Duration = Duration::from_secs(60);
/// The shortest delay after a failed attempt.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The shortest pause before a watch begins again; it doubles with each watch that fails or ends
/// early. A server that ends also ends the watches of all nodes.
const PAUSE: Duration = Duration::from_secs(2);
/// A watch that ends after less than this ends early.
const EARLY: Duration = Duration::from_secs(60);

/// Keeps one node object up to date.
pub(crate) struct Reporter {
    client: Client,
    gfd_labels: bool,
    /// The key of the taint to remove once pods can use the devices.
    startup_taint: Option<String>,
    watch: NodeWatch,
    pauses: ExponentialBackoff,
    /// No watch begins before this time.
    next_watch: Instant,
    node: Option<Node>,
    set: Option<Arc<DeviceSet>>,
    desired: Option<Desired>,
    events: EventQueue,
    /// Events about the first device set, until it is known whether an earlier run reported them.
    first_events: Vec<DeviceEvent>,
    /// The containers that use a driver which was replaced, as far as they are reported.
    outdated: BTreeSet<OutdatedContainer>,
    /// The plugin on this node.
    plugin: Option<PluginStatus>,
    /// How many configurations were rejected, as far as they are reported.
    rejected: u64,
    requests: Requests,
    /// By purpose.
    attempts: [Attempts; Purpose::ALL.len()],
    /// When the condition is written again.
    next_heartbeat: Instant,
}

/// The attempts to reach the API server for one purpose.
struct Attempts {
    purpose: Purpose,
    requests: Requests,
    delays: ExponentialBackoff,
    /// Not before this time, since the last one failed.
    next: Option<Instant>,
    failures: RepeatedText,
    /// The last change of the node object, and when it was made.
    last: Option<(Change, Instant)>,
}

impl Reporter {
    /// Keeps the node object of `client` up to date. `startup_taint` is the key of a taint to remove once
    /// pods can use the devices. `plugin` reports the pods that use a driver which was replaced.
    pub(crate) fn new(
        client: Client,
        gfd_labels: bool,
        startup_taint: Option<String>,
        plugin: Option<PluginStatus>,
    ) -> Reporter {
        let requests = Requests::new();
        Reporter {
            watch: NodeWatch::default(),
            pauses: growing(PAUSE),
            next_watch: Instant::now(),
            client,
            gfd_labels,
            startup_taint,
            node: None,
            set: None,
            desired: None,
            events: EventQueue::new(Instant::now()),
            first_events: Vec::new(),
            outdated: BTreeSet::new(),
            plugin,
            rejected: 0,
            attempts: Purpose::ALL.map(|purpose| Attempts::new(purpose, requests.clone())),
            requests,
            next_heartbeat: next_heartbeat(),
        }
    }

    /// The counters of its requests.
    pub(crate) fn requests(&self) -> Requests {
        self.requests.clone()
    }

    /// Runs without an end. `sets` has the devices once they are known, and `config_status` says what
    /// becomes of the configurations.
    pub(crate) async fn run(
        mut self,
        mut sets: watch::Receiver<Option<Arc<DeviceSet>>>,
        mut config_status: watch::Receiver<ReloadStatus>,
    ) -> Infallible {
        sets.mark_changed();
        config_status.mark_changed();
        loop {
            let wait = self.write().await;
            // The first devices would interrupt the connect, which would begin again.
            let watch_at = self.set.is_some().then_some(self.next_watch);
            let node = async {
                until(watch_at).await;
                self.watch.next(&self.client).await
            };
            let outdated = async {
                match &mut self.plugin {
                    Some(plugin) => plugin.next().await,
                    None => std::future::pending().await,
                }
            };
            // Without its sender, this program ends.
            tokio::select! {
                Ok(()) = sets.changed() => {
                    let set = sets.borrow_and_update().clone();
                    if let Some(set) = set {
                        self.devices_changed(set);
                    }
                }
                event = node => self.node_changed(event),
                Ok(()) = config_status.changed() => {
                    self.config_read(&config_status.borrow_and_update());
                }
                containers = outdated => self.outdated_changed(containers),
                () = until(wait) => {}
            }
        }
    }

    fn devices_changed(&mut self, set: Arc<DeviceSet>) {
        match &self.set {
            None => {
                self.first_events = device_events(&DeviceSet::default(), &set);
                self.next_watch = Instant::now();
            }
            Some(before) => {
                for event in device_events(before, &set) {
                    self.events.add(event);
                }
            }
        }
        self.desired = Some(Desired::of(&set, self.gfd_labels));
        self.set = Some(set);
    }

    fn config_read(&mut self, status: &ReloadStatus) {
        if status.rejected > self.rejected
            && let Some(error) = &status.last_error
        {
            self.events.add_rejection(error.clone());
        }
        self.rejected = status.rejected;
    }

    fn attempts(&mut self, purpose: Purpose) -> &mut Attempts {
        &mut self.attempts[purpose as usize]
    }

    fn outdated_changed(&mut self, containers: BTreeSet<OutdatedContainer>) {
        for container in containers.difference(&self.outdated) {
            self.events.add_outdated(container);
        }
        self.outdated = containers;
    }

    fn node_changed(&mut self, event: Result<Option<WatchEvent<Node>>, ClusterError>) {
        match event {
            Ok(Some(WatchEvent::Added(node) | WatchEvent::Modified(node))) => {
                self.attempts(Purpose::Watch).succeeded("following the node object");
                self.add_first_events(&node);
                if self.node.as_ref().is_none_or(|known| !is_older(&node, known)) {
                    self.node = Some(node);
                }
            }
            Ok(Some(WatchEvent::Deleted(_))) => {
                tracing::warn!("the node object was deleted");
                self.node = None;
            }
            Ok(Some(_)) => {}
            Ok(None) => _ = self.pause_watch(None),
            Err(error) => {
                let delay = self.pause_watch(error.retry_after());
                let attempts = self.attempts(Purpose::Watch);
                attempts.wait("cannot follow the node object", &error, delay);
            }
        }
    }

    /// The watch has ended, or could not begin; the server may want a pause of this length.
    fn pause_watch(&mut self, wanted: Option<Duration>) -> Duration {
        if self.next_watch.elapsed() >= EARLY {
            self.pauses = growing(PAUSE);
        }
        let delay = delay(&mut self.pauses, wanted);
        self.next_watch = Instant::now() + delay;
        delay
    }

    /// A node with the right condition had it from an earlier run, which also reported the Events.
    fn add_first_events(&mut self, node: &Node) {
        let events = std::mem::take(&mut self.first_events);
        if !self.desired.as_ref().is_some_and(|desired| desired.has_condition(node)) {
            for event in events {
                self.events.add(event);
            }
        }
    }

    /// Sends what is due, and returns when there may be more. What fails delays nothing else.
    async fn write(&mut self) -> Option<Instant> {
        let due = [
            self.write_node(Purpose::Labels).await,
            self.write_node(Purpose::Condition).await,
            self.write_node(Purpose::Taints).await,
            self.write_events().await,
        ];
        due.into_iter().flatten().min()
    }

    /// Makes the changes for this purpose that are due.
    async fn write_node(&mut self, purpose: Purpose) -> Option<Instant> {
        loop {
            let (node, desired) = (self.node.as_ref()?, self.desired.as_ref()?);
            let change = match desired.change(purpose, node, self.startup_taint.as_deref()) {
                None if purpose == Purpose::Condition => {
                    if self.next_heartbeat > Instant::now() {
                        return Some(self.next_heartbeat);
                    }
                    Change::Condition(desired.condition.clone())
                }
                change => change?,
            };
            let attempts = &mut self.attempts[purpose as usize];
            let due = attempts.due_change(&change);
            if due > Instant::now() {
                return Some(due);
            }
            match send(&self.client, node, &change).await {
                Ok(node) => {
                    attempts.succeeded("the API server accepts changes of the node");
                    attempts.last = Some((change, Instant::now()));
                    if purpose == Purpose::Condition {
                        self.next_heartbeat = next_heartbeat();
                    }
                    self.node = Some(node);
                }
                Err(error) => attempts.failed("cannot change the node object", &error),
            }
        }
    }

    /// Reports the Events that are due.
    async fn write_events(&mut self) -> Option<Instant> {
        loop {
            let node = self.node.as_ref()?;
            let now = Instant::now();
            let attempts = &mut self.attempts[Purpose::Events as usize];
            let due = attempts.due(self.events.due(now)?);
            if due > now {
                return Some(due);
            }
            let event = self.events.first()?;
            match self.client.report(node, event).await {
                Ok(()) => {
                    tracing::info!(reason = event.reason, note = event.note, "Event reported");
                    self.events.reported();
                    attempts.succeeded("the API server accepts Events");
                }
                Err(error) => attempts.failed("cannot report an Event", &error),
            }
        }
    }
}

/// Makes a change of `node`, and returns the node after it.
async fn send(client: &Client, node: &Node, change: &Change) -> Result<Node, ClusterError> {
    match change {
        Change::Labels(labels) => {
            let changed = client.apply_labels(labels).await?;
            tracing::info!(labels = labels.len(), "labels applied");
            Ok(changed)
        }
        Change::Condition(condition) => {
            let changed = client.apply_condition(node, condition).await?;
            let (status, reason) = (&condition.status, condition.reason.as_deref());
            let before = cluster::condition(node, &condition.type_);
            if before.is_none_or(|before| before.status != condition.status) {
                tracing::info!(status, reason, "condition set");
            }
            Ok(changed)
        }
        Change::Taints(taints) => {
            let changed = client.set_taints(node, taints).await?;
            tracing::info!("startup taint removed");
            Ok(changed)
        }
    }
}

impl Attempts {
    fn new(purpose: Purpose, requests: Requests) -> Attempts {
        let delays = growing(FIRST_DELAY);
        let failures = RepeatedText::default();
        Attempts { purpose, requests, delays, next: None, failures, last: None }
    }

    /// When to make an attempt that is due at `at`.
    fn due(&self, at: Instant) -> Instant {
        self.next.map_or(at, |next| next.max(at))
    }

    /// When to make this change of the node object.
    fn due_change(&self, change: &Change) -> Instant {
        let Some((last, at)) = &self.last else { return self.due(Instant::now()) };
        let pause = match change {
            change if last == change => REPEAT,
            Change::Condition(_) => SETTLED,
            _ => Duration::ZERO,
        };
        self.due(*at + pause)
    }

    fn succeeded(&mut self, what: &str) {
        self.requests.succeeded(self.purpose);
        if self.next.take().is_some() {
            tracing::info!("{what} again");
        }
        self.delays = growing(FIRST_DELAY);
        self.failures = RepeatedText::default();
    }

    fn failed(&mut self, what: &str, error: &ClusterError) {
        let delay = delay(&mut self.delays, error.retry_after());
        self.wait(what, error, delay);
    }

    /// After a failure whose delay is known.
    fn wait(&mut self, what: &str, error: &ClusterError, delay: Duration) {
        self.requests.failed(self.purpose);
        self.next = Some(Instant::now() + delay);
        let (text, hint) = (node::cli::error_chain(error), error.hint());
        if self.failures.is_due(&text) {
            let retry_in_s = delay.as_secs_f32();
            tracing::warn!(error = text, hint, retry_in_s, "{what}");
        }
    }
}

/// Delays of which the first is at least `first` and less than twice as long. They double up to a
/// minute, and never end. They are random, so that the programs of a thousand nodes do not return at
/// the same moment.
fn growing(first: Duration) -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(first).with_max_delay(LONGEST / 2);
    delays.with_jitter().without_max_times().build()
}

/// The next delay; longer by what the server asks for.
fn delay(delays: &mut ExponentialBackoff, wanted: Option<Duration>) -> Duration {
    delays.next().unwrap_or(LONGEST) + wanted.unwrap_or_default().min(LONGEST)
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
