//! Keeps the node object up to date with what the plugin reports.
//!
//! One loop knows the node and the plugin, and [`reconcile`] says what is due. Each kind of change
//! has one request on its way at most, so one that is slow, refused or not answered delays no
//! other. A failed request is retried after growing, random delays without limit: failures of the
//! API server never end this program.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster::{
    Client, ClusterError, Event, FailureKind, Node, NodeCondition, NodeWatch, WatchEvent, has_taint,
};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use plugin_status::answering_daemons::NodeState;
use process::event_loop::reached;
use report::{Condition, DeviceEvent, DeviceResources, device_events};
use strum::VariantArray as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::cordon_writer::CordonWriter;
use crate::desired::{Desired, cordoned_devices};
use crate::event_queue::EventQueue;
use crate::known_node::KnownNode;
use crate::license_wait::LicenseWait;
use crate::monitoring::{Purpose, Requests};
use crate::plugin_history::PluginHistory;
use crate::policy_check::{self, PolicyCheck};
use crate::reconcile::{Attempt, Attempts, Change, delay, growing, has_condition, reconcile};
use crate::taint_wait::TaintWait;

#[cfg(test)]
mod tests;

/// The shortest pause before a watch begins again; it doubles with each watch that fails or ends
/// early. A server that ends also ends the watches of all nodes.
const PAUSE: Duration = Duration::from_secs(2);
/// How much longer the pause after the first watch that fails may be. Each length is equally likely,
/// so that the watches of thousands of nodes do not return to a server at once.
const SPREAD: Duration = Duration::from_secs(8);
/// How long the watch may fail before that is a problem. A server that restarts takes some time.
const PATIENCE: Duration = Duration::from_mins(1);
/// A watch that ends after less than this ends early.
const EARLY: Duration = Duration::from_mins(1);

/// What to report, and to whom.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Whether to set the labels of NVIDIA's GPU Feature Discovery, too.
    pub gfd_labels: bool,
    /// The key of the taint to remove once pods can use the devices.
    pub startup_taint: Option<String>,
    /// The directory of the plugin on this node, which gets the devices that the node's annotation
    /// takes out of service.
    pub plugin: Option<PathBuf>,
    /// Whether to warn if no admission policy restricts the account.
    pub check_policy: bool,
}

/// Keeps one node object up to date.
pub(crate) struct Reporter {
    client: Client,
    settings: Settings,
    requests: Requests,
    node: KnownNode,
    plugin: PluginHistory,
    events: EventQueue,
    /// Events about the first report, until it is known whether an earlier run reported them.
    first_events: Option<Vec<DeviceEvent>>,
    resources: DeviceResources,
    is_outage_reported: bool,
    taint_wait: TaintWait,
    license_wait: LicenseWait,
    attempts: Attempts,
    /// Since when the watch of the node object fails, if it does.
    watch_fails_since: Option<Instant>,
    cordons: Option<CordonWriter>,
    /// Whether the cordoned devices are to be handed to the plugin.
    are_cordons_due: bool,
    /// Until it is known whether a policy restricts the account.
    policy_check: Option<PolicyCheck>,
    writes: FuturesUnordered<BoxFuture<'static, Written>>,
}

/// The end of a request.
enum Written {
    Change(Change, Box<Result<Node, ClusterError>>),
    Event(Event, Result<(), ClusterError>),
    /// The label that no program sets, and that was only tried.
    Tried(Result<(), ClusterError>),
    /// How many cordoned devices were handed to the plugin, and whether the file is new.
    Cordons(usize, io::Result<bool>),
}

/// What the watch of the node object reports.
enum Watched {
    Event(Box<WatchEvent<Node>>),
    Failure,
}

impl Reporter {
    /// Keeps the node object of `client` up to date.
    pub(crate) fn new(client: Client, settings: Settings) -> Reporter {
        Reporter {
            policy_check: settings.check_policy.then(PolicyCheck::new),
            cordons: settings.plugin.as_deref().map(CordonWriter::new),
            client,
            settings,
            requests: Requests::new(),
            node: KnownNode::default(),
            plugin: PluginHistory::default(),
            events: EventQueue::new(Instant::now()),
            first_events: None,
            resources: DeviceResources::default(),
            is_outage_reported: false,
            taint_wait: TaintWait::default(),
            license_wait: LicenseWait::default(),
            attempts: Attempts::new(),
            watch_fails_since: None,
            are_cordons_due: false,
            writes: FuturesUnordered::new(),
        }
    }

    /// The counters of its requests.
    pub(crate) fn requests(&self) -> Requests {
        self.requests.clone()
    }

    /// Runs without an end. `states` has what the plugin reports.
    pub(crate) async fn run(self, states: watch::Receiver<NodeState>) -> Infallible {
        // The watch is a separate future, because a connect that is canceled would begin again.
        let (send, node_events) = mpsc::channel(16);
        let watching = follow_node(self.client.clone(), self.requests.clone(), send);
        tokio::select! {
            never = watching => never,
            never = self.follow(states, node_events) => never,
        }
    }

    async fn follow(
        mut self,
        mut states: watch::Receiver<NodeState>,
        mut node_events: mpsc::Receiver<Watched>,
    ) -> Infallible {
        states.mark_changed();
        loop {
            let next = self.step(Instant::now());
            tokio::select! {
                biased;
                () = changed(&mut states) => {
                    let state = states.borrow_and_update().clone();
                    self.plugin_changed(state, Instant::now());
                }
                Some(watched) = node_events.recv() => self.watched(watched, Instant::now()),
                Some(written) = self.writes.next() => self.written(written, Instant::now()),
                () = reached(next) => {}
            }
        }
    }

    /// Starts what is due, and returns when something may be due again.
    fn step(&mut self, now: Instant) -> Option<Instant> {
        if self.node.advance(now) {
            tracing::warn!("the node object has an earlier version; the API server was restored");
            self.are_cordons_due = true;
        }
        self.report_outage(now);
        if let Some(listing) = self.plugin.answering(now) {
            self.license_wait.follow(&listing.node, &mut self.events, now);
        }
        let Some(node) = self.node.get().cloned() else {
            self.requests.set_problem(Some("the node object is not known".to_owned()));
            return [self.plugin.deadline(now), self.license_wait.deadline(now)]
                .into_iter()
                .flatten()
                .min();
        };
        let desired = Desired::of(&self.plugin, &node, self.settings.gfd_labels, now);
        self.add_first_events(&node, &desired);
        let taint = self.settings.startup_taint.as_deref();
        let waiting = taint.filter(|key| has_taint(&node, key)).zip(desired.waits_for.as_ref());
        self.taint_wait.follow(waiting, &mut self.events, now);
        let due = reconcile(&node, &desired, taint, &self.attempts, now);
        for change in due.changes {
            self.start(&node, change);
        }
        let cordons = self.write_cordons(&node, now);
        let event = self.report_next_event(&node, now);
        let watch = self.watch_fails_since.map(|since| since + PATIENCE);
        self.set_problem(&due.failing, now);
        let policy = self.check_policy(now);
        let deadlines = [due.next, event, cordons, self.plugin.deadline(now), self.node.deadline()];
        let watch = watch.filter(|at| *at > now);
        let waits = [self.taint_wait.deadline(), self.license_wait.deadline(now), policy, watch];
        deadlines.into_iter().chain(waits).flatten().min()
    }

    fn plugin_changed(&mut self, state: NodeState, now: Instant) {
        let before = self.plugin.listing(now);
        self.plugin.update(state, now);
        let Some(after) = self.plugin.listing(now) else { return };
        let is_first = before.is_none();
        let before = before.unwrap_or_default();
        let events = device_events(&before.node, &after.node);
        if is_first {
            self.first_events = Some(events);
        } else {
            self.events.extend(events);
        }
        let moved = self.resources.update(&after.node);
        self.events.extend(moved.into_iter().map(DeviceEvent::from).collect());
        for error in after.rejected_configurations.difference(&before.rejected_configurations) {
            self.events.add_rejection(error.clone());
        }
    }

    fn watched(&mut self, watched: Watched, now: Instant) {
        let Watched::Event(event) = watched else {
            self.watch_fails_since.get_or_insert(now);
            return;
        };
        match *event {
            WatchEvent::Added(node) | WatchEvent::Modified(node) => {
                self.watch_fails_since = None;
                if self.node.watched(node, now) {
                    self.attempts.forget_changes();
                }
                self.are_cordons_due = true;
            }
            WatchEvent::Deleted(_) => {
                tracing::warn!("the node object was deleted");
                self.node.deleted();
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        }
    }

    /// A node with the right condition had it from an earlier run, which also reported the Events.
    fn add_first_events(&mut self, node: &Node, desired: &Desired) {
        let Some(healthy) = desired.conditions.first() else { return };
        let Some(events) = self.first_events.take() else { return };
        if has_condition(node, healthy) {
            self.license_wait.were_reported();
        } else {
            self.events.extend(events);
        }
    }

    fn report_outage(&mut self, now: Instant) {
        let outage = self.plugin.outage(now).or_else(|| self.plugin.partial_outage(now));
        if let Some(outage) = outage.as_ref().filter(|_| !self.is_outage_reported) {
            tracing::warn!(reason = %outage.message, "devices are not known any more");
            self.events.add_warning(outage.event, "Discover", outage.message.to_string());
        }
        if outage.is_none() && self.is_outage_reported {
            tracing::info!("every device plugin reports its devices again");
        }
        self.is_outage_reported = outage.is_some();
    }

    fn start(&mut self, node: &Node, change: Change) {
        self.attempts.of_mut(change.purpose()).is_running = true;
        let client = self.client.clone();
        let node = node.clone();
        self.writes.push(Box::pin(async move {
            let result = send(&client, &node, &change).await;
            Written::Change(change, Box::new(result))
        }));
    }

    /// Starts to report the next Event, or returns when to do that.
    fn report_next_event(&mut self, node: &Node, now: Instant) -> Option<Instant> {
        let attempt = self.attempts.of_mut(Purpose::Events);
        if attempt.is_running {
            return None;
        }
        let due = attempt.due(self.events.due(now)?);
        if due > now {
            return Some(due);
        }
        let event = self.events.take()?;
        attempt.is_running = true;
        let client = self.client.clone();
        let node = node.clone();
        self.writes.push(Box::pin(async move {
            let result = client.report(&node, &event).await;
            Written::Event(event, result)
        }));
        None
    }

    /// Starts to find out whether a policy restricts the account, or returns when to do that.
    fn check_policy(&mut self, now: Instant) -> Option<Instant> {
        let check = self.policy_check.as_mut()?;
        let due = check.due(now)?;
        if due > now {
            return Some(due);
        }
        check.started();
        let client = self.client.clone();
        self.writes.push(Box::pin(async move {
            Written::Tried(client.try_label(policy_check::LABEL).await)
        }));
        None
    }

    fn written(&mut self, written: Written, now: Instant) {
        match written {
            Written::Tried(answer) => {
                self.policy_check.take_if(|check| check.is_last(&answer, now));
            }
            Written::Change(change, result) => {
                let purpose = change.purpose();
                self.attempts.of_mut(purpose).is_running = false;
                match *result {
                    Ok(node) => {
                        self.succeeded(purpose, "the API server accepts changes of the node");
                        if self.node.answered(node) {
                            self.attempts.accepted(change, now);
                            // The watch may be behind the answer, or fail.
                            self.are_cordons_due = true;
                        }
                    }
                    Err(error) => {
                        self.attempts.refused(&change, &error, now);
                        self.failed(purpose, "cannot change the node object", &error, now);
                    }
                }
            }
            Written::Cordons(count, result) => self.cordons_written(count, result, now),
            Written::Event(event, result) => {
                self.attempts.of_mut(Purpose::Events).is_running = false;
                match result {
                    Ok(()) => {
                        let Event { reason, note, .. } = event;
                        tracing::info!(reason, note, "Event reported");
                        self.events.reported(now);
                        self.succeeded(Purpose::Events, "the API server accepts Events");
                    }
                    Err(error) => {
                        self.events.put_back(event);
                        self.failed(Purpose::Events, "cannot report an Event", &error, now);
                    }
                }
            }
        }
    }

    fn succeeded(&mut self, purpose: Purpose, what: &str) {
        succeeded(self.attempts.of_mut(purpose), &self.requests, purpose, what);
    }

    fn failed(&mut self, purpose: Purpose, what: &str, error: &ClusterError, now: Instant) {
        failed(self.attempts.of_mut(purpose), &self.requests, purpose, what, error, now);
    }

    /// Starts to hand the devices in the node's annotation to the plugin, or returns when to do that.
    /// What the plugin has got stays as long as the node is not known.
    fn write_cordons(&mut self, node: &Node, now: Instant) -> Option<Instant> {
        let writer = self.cordons.clone().filter(|_| self.are_cordons_due)?;
        let attempt = self.attempts.of_mut(Purpose::Cordons);
        if attempt.is_running {
            return None;
        }
        let due = attempt.due(now);
        if due > now {
            return Some(due);
        }
        attempt.is_running = true;
        self.are_cordons_due = false;
        let devices = cordoned_devices(node);
        self.writes.push(Box::pin(async move {
            let count = devices.len();
            Written::Cordons(count, writer.write(devices).await)
        }));
        None
    }

    fn cordons_written(&mut self, devices: usize, result: io::Result<bool>, now: Instant) {
        let attempt = self.attempts.of_mut(Purpose::Cordons);
        attempt.is_running = false;
        match result {
            Ok(is_new) => {
                if is_new {
                    tracing::info!(devices, "cordoned devices handed to the plugin");
                }
                if is_new || attempt.is_failing() {
                    self.succeeded(Purpose::Cordons, "the plugin gets cordoned devices");
                }
            }
            Err(error) => {
                self.are_cordons_due = true;
                let kind = FailureKind::Local(error.kind());
                let what = "cannot hand cordoned devices to the plugin";
                if !attempt.is_failing() {
                    let text = format!(
                        "{what}: {error}; until then, the devices that it knew before are out of \
                         service"
                    );
                    self.events.add_warning("DirectXCordonNotApplied", "Cordon", text);
                }
                self.requests.failed(Purpose::Cordons);
                if let Some(delay) = attempt.failed(kind, None, now) {
                    let retry_in_s = delay.as_secs_f32();
                    let directory = self.settings.plugin.as_deref().map(Path::display);
                    let directory = directory.map(tracing::field::display);
                    tracing::warn!(directory, %error, retry_in_s, "{what}");
                }
            }
        }
    }

    /// Says whether the program does its work. `failing` are the purposes whose change of the node
    /// is necessary and has failed.
    fn set_problem(&self, failing: &[Purpose], now: Instant) {
        let fails = |purpose: &Purpose| match purpose {
            Purpose::Labels | Purpose::Condition | Purpose::Taints => failing.contains(purpose),
            Purpose::Events | Purpose::Cordons => self.attempts.of(*purpose).is_failing(),
            Purpose::Watch => self.watch_fails_since.is_some_and(|since| now >= since + PATIENCE),
        };
        let failing: Vec<Purpose> = Purpose::VARIANTS.iter().copied().filter(fails).collect();
        self.requests.set_problem(Purpose::problem_of(&failing));
    }
}

/// Follows the node object, and hands over each of its states.
async fn follow_node(
    client: Client,
    requests: Requests,
    watched: mpsc::Sender<Watched>,
) -> Infallible {
    let mut attempt = Attempt::new();
    let mut watch = NodeWatch::default();
    let mut pauses = growing(PAUSE);
    let mut began = Instant::now();
    loop {
        let end = match watch.next(&client).await {
            Ok(Some(event)) => {
                if matches!(event, WatchEvent::Added(_) | WatchEvent::Modified(_)) {
                    let what = "following the node object";
                    succeeded(&mut attempt, &requests, Purpose::Watch, what);
                }
                // The receiver is dropped together with this future.
                let _ = watched.send(Watched::Event(event.into())).await;
                continue;
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if began.elapsed() >= EARLY {
            pauses = growing(PAUSE);
        }
        let mut pause = delay(&mut pauses, end.as_ref().err().and_then(ClusterError::retry_after));
        if let Err(error) = end {
            pause = pause.max(PAUSE + SPREAD.mul_f32(fastrand::f32()));
            requests.failed(Purpose::Watch);
            if attempt.failed_until(error.kind(), Instant::now() + pause) {
                log_failure("cannot follow the node object", &error, pause);
            }
            let _ = watched.send(Watched::Failure).await;
        }
        sleep(pause).await;
        began = Instant::now();
    }
}

/// An attempt for this purpose succeeded.
fn succeeded(attempt: &mut Attempt, requests: &Requests, purpose: Purpose, what: &str) {
    requests.succeeded(purpose);
    if attempt.succeeded() {
        tracing::info!("{what} again");
    }
}

/// An attempt for this purpose failed.
fn failed(
    attempt: &mut Attempt,
    requests: &Requests,
    purpose: Purpose,
    what: &str,
    error: &ClusterError,
    now: Instant,
) {
    requests.failed(purpose);
    if let Some(delay) = attempt.failed(error.kind(), error.retry_after(), now) {
        log_failure(what, error, delay);
    }
}

fn log_failure(what: &str, error: &ClusterError, delay: Duration) {
    let retry_in_s = delay.as_secs_f32();
    let text = command_line::error_chain(error);
    tracing::warn!(error = text, hint = error.hint(), retry_in_s, "{what}");
}

/// Makes a change of `node`, and returns the node after it.
async fn send(client: &Client, node: &Node, change: &Change) -> Result<Node, ClusterError> {
    match change {
        Change::Labels(labels) => {
            let changed = client.apply_labels(labels).await?;
            tracing::info!(labels = labels.len(), "labels applied");
            Ok(changed)
        }
        Change::Conditions(conditions) => {
            let written: Vec<NodeCondition> = conditions.iter().map(node_condition).collect();
            let changed = client.apply_conditions(node, &written).await?;
            for Condition { kind, status, reason, .. } in conditions {
                let kind = kind.name();
                let status = status.to_string();
                let before = cluster::condition(node, kind);
                if before.is_none_or(|before| before.status != status) {
                    tracing::info!(condition = kind, status, reason, "condition set");
                }
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

fn node_condition(condition: &Condition) -> NodeCondition {
    NodeCondition {
        type_: condition.kind.name().to_owned(),
        status: condition.status.to_string(),
        reason: Some(condition.reason.to_owned()),
        message: Some(condition.message.to_string()),
        ..NodeCondition::default()
    }
}

/// Waits for a change. Without the sender, nothing changes any more.
async fn changed<T>(values: &mut watch::Receiver<T>) {
    if values.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
