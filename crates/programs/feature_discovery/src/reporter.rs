//! Keeps the node object up to date with the devices.
//!
//! It follows the devices and the node object, and sends as few requests as possible. A failed
//! request is retried after growing, random delays without limit: failures of the API server never
//! end this program.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use cluster::{Client, ClusterError, Node, NodeWatch, WatchEvent, is_older};
use daemon::configuration::ReloadStatus;
use daemon::cordon_file;
use daemon::logging::RepeatedText;
use daemon::node_devices::Discovery;
use devices::report::{DeviceEvent, NodeReport, device_events};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use crate::event_queue::EventQueue;
use crate::monitoring::{Purpose, Requests};
use crate::node_state::{Change, Desired, cordoned_devices};

#[cfg(test)]
mod tests;

/// How long the same change is not repeated. Another program may undo it each time.
const REPEAT: Duration = Duration::from_secs(30);
/// How long a condition stays before it changes again, also while a device flaps.
const SETTLED: Duration = Duration::from_secs(10);
/// How often at least the condition is written although nothing changes, so that one of a program
/// that no longer runs can be recognized by its age.
const HEARTBEAT: Duration = Duration::from_mins(5);
/// The longest delay. A node must not be wrong for long after the API server has returned.
const LONGEST: Duration = Duration::from_mins(1);
/// The shortest delay after a failed attempt.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The shortest pause before a watch begins again; it doubles with each watch that fails or ends
/// early. A server that ends also ends the watches of all nodes.
const PAUSE: Duration = Duration::from_secs(2);
/// A watch that ends after less than this ends early.
const EARLY: Duration = Duration::from_mins(1);

/// Keeps one node object up to date.
pub(crate) struct Reporter {
    client: Client,
    gfd_labels: bool,
    /// The key of the taint to remove once pods can use the devices.
    startup_taint: Option<String>,
    /// The directory of the plugin on this node, which gets the devices that the node's annotation
    /// takes out of service.
    plugin: Option<PathBuf>,
    requests: Requests,
    /// What the loops share.
    state: watch::Sender<State>,
}

/// What is known, and what is to be reported.
struct State {
    node: Option<Node>,
    report: Option<NodeReport>,
    desired: Option<Desired>,
    events: EventQueue,
    /// Events about the first report, until it is known whether an earlier run reported them.
    first_events: Vec<DeviceEvent>,
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
    /// Keeps the node object of `client` up to date. `startup_taint` is the key of a taint to
    /// remove once pods can use the devices. The plugin with the directory `plugin` gets the
    /// devices that the node's annotation takes out of service.
    pub(crate) fn new(
        client: Client,
        gfd_labels: bool,
        startup_taint: Option<String>,
        plugin: Option<PathBuf>,
    ) -> Reporter {
        let requests = Requests::new();
        let state = watch::Sender::new(State::new());
        Reporter { client, gfd_labels, startup_taint, plugin, requests, state }
    }

    /// The counters of its requests.
    pub(crate) fn requests(&self) -> Requests {
        self.requests.clone()
    }

    /// Runs without an end. `sets` has the devices once they are known, and `config_status` says
    /// what becomes of the configurations.
    pub(crate) async fn run(
        self,
        sets: watch::Receiver<Discovery>,
        config_status: watch::Receiver<ReloadStatus>,
    ) -> Infallible {
        // A loop for each, so that an answer that takes long delays nothing else.
        tokio::select! {
            biased;
            never = self.follow_devices(sets) => never,
            never = self.follow_config(config_status) => never,
            never = self.follow_node() => never,
            never = self.write_node(Purpose::Labels) => never,
            never = self.write_node(Purpose::Condition) => never,
            never = self.write_node(Purpose::Taints) => never,
            never = self.write_events() => never,
            never = self.write_cordons() => never,
        }
    }

    async fn follow_devices(&self, mut sets: watch::Receiver<Discovery>) -> Infallible {
        loop {
            let discovery = sets.borrow_and_update().clone();
            if let Discovery::Done(set) = discovery {
                let report = NodeReport::of(&set);
                self.state.send_modify(|state| state.report_changed(report, self.gfd_labels));
            }
            changed(&mut sets).await;
        }
    }

    async fn follow_config(&self, mut status: watch::Receiver<ReloadStatus>) -> Infallible {
        let mut reported = 0;
        loop {
            let ReloadStatus { rejected, last_error, .. } = status.borrow_and_update().clone();
            if rejected > reported
                && let Some(error) = last_error
            {
                self.state.send_modify(|state| state.events.add_rejection(error));
            }
            reported = rejected;
            changed(&mut status).await;
        }
    }

    /// Follows the node object once there are devices.
    async fn follow_node(&self) -> Infallible {
        // The sender is in this struct.
        let _ = self.state.subscribe().wait_for(|state| state.desired.is_some()).await;
        let mut attempts = Attempts::new(Purpose::Watch, self.requests());
        let mut watch = NodeWatch::default();
        let mut pauses = growing(PAUSE);
        let mut began = Instant::now();
        loop {
            let error = match watch.next(&self.client).await {
                Ok(Some(event)) => {
                    if matches!(event, WatchEvent::Added(_) | WatchEvent::Modified(_)) {
                        attempts.succeeded("following the node object");
                    }
                    self.state.send_modify(|state| state.node_changed(event));
                    continue;
                }
                Ok(None) => None,
                Err(error) => Some(error),
            };
            if began.elapsed() >= EARLY {
                pauses = growing(PAUSE);
            }
            let delay = delay(&mut pauses, error.as_ref().and_then(ClusterError::retry_after));
            if let Some(error) = error {
                attempts.wait("cannot follow the node object", &error, delay);
            }
            sleep(delay).await;
            began = Instant::now();
        }
    }

    /// Makes the changes for this purpose.
    async fn write_node(&self, purpose: Purpose) -> Infallible {
        let mut state = self.state.subscribe();
        let mut attempts = Attempts::new(purpose, self.requests());
        let mut heartbeat = next_heartbeat();
        loop {
            state.mark_unchanged();
            let next = self.next_change(&attempts, heartbeat);
            let Some((node, change, _)) = next.as_ref().filter(|(.., due)| *due <= Instant::now())
            else {
                let due = next.map(|(.., due)| due);
                changed_or_due(&mut state, due).await;
                continue;
            };
            // Boxed, because a request is large and rare.
            match Box::pin(send(&self.client, node, change)).await {
                Ok(node) => {
                    attempts.succeeded("the API server accepts changes of the node");
                    attempts.last = Some((change.clone(), Instant::now()));
                    heartbeat = next_heartbeat();
                    self.state.send_modify(|state| state.node_read(node));
                }
                Err(error) => attempts.failed("cannot change the node object", &error),
            }
        }
    }

    /// The next change of the node object, and when it is due.
    fn next_change(
        &self,
        attempts: &Attempts,
        heartbeat: Instant,
    ) -> Option<(Node, Change, Instant)> {
        let state = self.state.borrow();
        let node = state.node.as_ref()?;
        let desired = state.desired.as_ref()?;
        let change = desired.change(attempts.purpose, node, self.startup_taint.as_deref());
        let (change, due) = match change {
            Some(change) => (change, Instant::now()),
            None if attempts.purpose == Purpose::Condition => {
                (Change::Condition(desired.condition.clone()), heartbeat)
            }
            None => return None,
        };
        let due = due.max(attempts.due_change(&change));
        Some((node.clone(), change, due))
    }

    /// Hands the devices in the node's annotation to the plugin. What it has got stays as long as
    /// the node is not known.
    async fn write_cordons(&self) -> Infallible {
        let Some(directory) = &self.plugin else { return std::future::pending().await };
        let file = cordon_file::path_in(directory);
        let mut state = self.state.subscribe();
        let mut failures = RepeatedText::default();
        loop {
            let devices = state.borrow_and_update().node.as_ref().map(cordoned_devices);
            let Some(devices) = devices else {
                changed(&mut state).await;
                continue;
            };
            match cordon_file::write(&file, &devices) {
                Ok(is_new) => {
                    if is_new {
                        tracing::info!(
                            devices = devices.len(),
                            "cordoned devices handed to the plugin"
                        );
                    }
                    failures = RepeatedText::default();
                    changed(&mut state).await;
                }
                Err(error) => {
                    let error = error.to_string();
                    if failures.is_due(&error) {
                        let file = file.display();
                        tracing::warn!(%file, error, "cannot hand cordoned devices to the plugin");
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Reports the Events.
    async fn write_events(&self) -> Infallible {
        let mut state = self.state.subscribe();
        let mut attempts = Attempts::new(Purpose::Events, self.requests());
        loop {
            let due = {
                let state = state.borrow_and_update();
                let next = state.events.due(Instant::now()).filter(|_| state.node.is_some());
                next.map(|due| attempts.due(due))
            };
            if due.is_none_or(|due| due > Instant::now()) {
                changed_or_due(&mut state, due).await;
                continue;
            }
            let mut next = None;
            self.state.send_modify(|state| next = state.node.clone().zip(state.events.take()));
            let Some((node, event)) = next else { continue };
            match Box::pin(self.client.report(&node, &event)).await {
                Ok(()) => {
                    tracing::info!(reason = event.reason, note = event.note, "Event reported");
                    self.state.send_modify(|state| state.events.reported(Instant::now()));
                    attempts.succeeded("the API server accepts Events");
                }
                Err(error) => {
                    self.state.send_modify(|state| state.events.put_back(event));
                    attempts.failed("cannot report an Event", &error);
                }
            }
        }
    }
}

impl State {
    fn new() -> State {
        let events = EventQueue::new(Instant::now());
        State { node: None, report: None, desired: None, events, first_events: Vec::new() }
    }

    fn report_changed(&mut self, report: NodeReport, gfd_labels: bool) {
        match &self.report {
            None => self.first_events = device_events(&NodeReport::default(), &report),
            Some(before) => self.events.extend(device_events(before, &report)),
        }
        self.desired = Some(Desired::of(&report, gfd_labels));
        self.report = Some(report);
    }

    fn node_changed(&mut self, event: WatchEvent<Node>) {
        match event {
            WatchEvent::Added(node) | WatchEvent::Modified(node) => {
                self.add_first_events(&node);
                self.node_read(node);
            }
            WatchEvent::Deleted(_) => {
                tracing::warn!("the node object was deleted");
                self.node = None;
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        }
    }

    /// The answers to requests and the changes of a watch arrive in any order.
    fn node_read(&mut self, node: Node) {
        if self.node.as_ref().is_none_or(|known| !is_older(&node, known)) {
            self.node = Some(node);
        }
    }

    /// A node with the right condition had it from an earlier run, which also reported the Events.
    fn add_first_events(&mut self, node: &Node) {
        let events = std::mem::take(&mut self.first_events);
        if !self.desired.as_ref().is_some_and(|desired| desired.has_condition(node)) {
            self.events.extend(events);
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
            let status = &condition.status;
            let reason = condition.reason.as_deref();
            let before = cluster::condition(node, &condition.type_);
            if before.is_none_or(|before| before.status != condition.status) {
                tracing::info!(status, reason, "condition set");
            }
            Ok(changed)
        }
        Change::RemoveTaint(key) => {
            let changed = client.remove_taint(node, key).await?;
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
        let text = command_line::error_chain(error);
        let hint = error.hint();
        if self.failures.is_due(&text) {
            let retry_in_s = delay.as_secs_f32();
            tracing::warn!(error = text, hint, retry_in_s, "{what}");
        }
    }
}

/// Delays of which the first is at least `first` and less than twice as long. They double up to a
/// minute, and never end. They are random, so that the programs of a thousand nodes do not return
/// at the same moment.
fn growing(first: Duration) -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(first).with_max_delay(LONGEST / 2);
    delays.with_jitter().without_max_times().build()
}

/// The next delay; longer by what the server asks for.
fn delay(delays: &mut ExponentialBackoff, wanted: Option<Duration>) -> Duration {
    delays.next().unwrap_or(LONGEST) + wanted.unwrap_or_default().min(LONGEST)
}

/// When the next heartbeat is due: at a random time, so that the nodes of a cluster do not write at
/// the same time.
fn next_heartbeat() -> Instant {
    Instant::now() + HEARTBEAT.mul_f32(0.8 + 0.2 * fastrand::f32())
}

/// Waits for a change. Without the sender, this program ends.
async fn changed<T>(values: &mut watch::Receiver<T>) {
    if values.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits for a change of the state, or until this time.
async fn changed_or_due(state: &mut watch::Receiver<State>, due: Option<Instant>) {
    match due {
        Some(due) => _ = timeout_at(due, changed(state)).await,
        None => changed(state).await,
    }
}
