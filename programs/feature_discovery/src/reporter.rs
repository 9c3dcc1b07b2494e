//! Keeps the node object as the devices are.
//!
//! In come device sets and the node object, whenever either changes; out go as few requests as
//! possible. A failed request is repeated after growing, random delays, for ever: nothing that
//! happens to the API server ends this program.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cluster::{Client, ClusterError, Node, NodeWatch, Retry, first_delay};
use daemon::change_log::RepeatedText;
use daemon::config_reload::ReloadStatus;
use devices::DeviceSet;
use kubelet::OutdatedContainer;
use node_report::{DeviceEvent, LabelFamily, device_events};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::config_selection::{LABEL, Rejections, SelectionFile};
use crate::event_queue::EventQueue;
use crate::feature_object::FeatureObject;
use crate::node_devices::NodeDevicesError;
use crate::node_state::{Change, Desired, MANAGER, next_change};
use crate::plugin_status::PluginStatus;

#[cfg(test)]
mod tests;

/// How long the same change is not repeated. Another program may undo it each time.
const REPEAT: Duration = Duration::from_secs(30);

/// What to report about which node.
pub(crate) struct Report {
    /// The name of the node object.
    pub(crate) node: String,
    pub(crate) family: LabelFamily,
    /// The key of the taint to remove once pods can use the devices.
    pub(crate) startup_taint: Option<String>,
    /// The file that names the configuration, if a label of the node selects it.
    pub(crate) selection: Option<SelectionFile>,
    /// The object for the labels, if Node Feature Discovery sets them on the node.
    pub(crate) feature: Option<FeatureObject>,
}

/// Keeps one node object up to date.
pub(crate) struct Reporter {
    report: Report,
    client: Client,
    watch: NodeWatch,
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
    last_change: Option<(Change, Instant)>,
    labelling: Attempts,
    reading: Attempts,
    writing: Attempts,
    /// Nothing is written before this time; known once there was a node object.
    first_write: Option<Instant>,
}

/// The attempts to reach the API server for one purpose.
#[derive(Default)]
struct Attempts {
    retry: Retry,
    /// Not before this time, since the last one failed.
    next: Option<Instant>,
    failures: RepeatedText,
}

/// What happens next.
enum Step {
    Devices(Result<Arc<DeviceSet>, NodeDevicesError>),
    Node(Result<Option<Node>, ClusterError>),
    Rejected(String),
    Outdated(Option<BTreeSet<OutdatedContainer>>),
    TimePassed,
}

impl Reporter {
    pub(crate) fn new(report: Report, client: Client) -> Reporter {
        Reporter {
            watch: NodeWatch::new(&report.node),
            report,
            client,
            node: None,
            set: None,
            desired: None,
            events: EventQueue::new(Instant::now()),
            first_events: Vec::new(),
            outdated: BTreeSet::new(),
            plugin: None,
            last_change: None,
            labelling: Attempts::default(),
            reading: Attempts::default(),
            writing: Attempts::default(),
            first_write: None,
        }
    }

    /// Also reports the pods that use a driver which was replaced, as `plugin` knows them.
    pub(crate) fn with_plugin(self, plugin: PluginStatus) -> Reporter {
        Reporter { plugin: Some(plugin), ..self }
    }

    /// Runs until `next_set`, which waits for the next device set, fails. `config_status` says what
    /// becomes of the configurations.
    pub(crate) async fn run(
        mut self,
        mut next_set: impl AsyncFnMut() -> Result<Arc<DeviceSet>, NodeDevicesError>,
        config_status: watch::Receiver<ReloadStatus>,
    ) -> NodeDevicesError {
        let mut rejections = Rejections::of(config_status);
        loop {
            let wait = self.write().await;
            match self.step(&mut next_set, &mut rejections, wait).await {
                Step::Devices(Ok(set)) => {
                    if let Some(plugin) = &mut self.plugin {
                        plugin.ask_soon();
                    }
                    self.devices_changed(set);
                }
                Step::Devices(Err(error)) => return error,
                Step::Node(node) => self.node_changed(node),
                Step::Rejected(error) => self.events.add_rejection(error),
                Step::Outdated(containers) => self.outdated_changed(containers),
                Step::TimePassed => self.select_configuration(),
            }
        }
    }

    /// Waits for something that `write` may act on; at most until `wait`.
    async fn step(
        &mut self,
        next_set: &mut impl AsyncFnMut() -> Result<Arc<DeviceSet>, NodeDevicesError>,
        rejections: &mut Rejections,
        wait: Option<Instant>,
    ) -> Step {
        let selection = self.report.selection.as_ref().and_then(SelectionFile::retry);
        let has_devices = self.set.is_some();
        let node = async {
            if !has_devices {
                // The first devices would interrupt the connect, which would begin again.
                return std::future::pending().await;
            }
            self.watch.next(&self.client).await
        };
        let plugin = &mut self.plugin;
        let outdated = async {
            match plugin {
                Some(plugin) => plugin.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            set = next_set() => Step::Devices(set),
            node = node => Step::Node(node),
            error = rejections.next() => Step::Rejected(error),
            containers = outdated => Step::Outdated(containers),
            () = until(wait) => Step::TimePassed,
            () = until(selection) => Step::TimePassed,
        }
    }

    fn devices_changed(&mut self, set: Arc<DeviceSet>) {
        match &self.set {
            None => self.first_events = device_events(&DeviceSet::default(), &set),
            Some(before) => {
                for event in device_events(before, &set) {
                    self.events.add(event);
                }
            }
        }
        let mut desired = Desired::of(&set, self.report.family);
        if let Some(feature) = &mut self.report.feature {
            // Labels that this program has set on the node earlier are removed.
            feature.set_labels(std::mem::take(&mut desired.labels));
        }
        self.desired = Some(desired);
        self.set = Some(set);
    }

    fn outdated_changed(&mut self, containers: Option<BTreeSet<OutdatedContainer>>) {
        // A plugin that does not answer changes nothing.
        let Some(containers) = containers else { return };
        for container in containers.difference(&self.outdated) {
            self.events.add_outdated(container);
        }
        self.outdated = containers;
    }

    fn node_changed(&mut self, node: Result<Option<Node>, ClusterError>) {
        match node {
            Ok(Some(node)) => {
                self.reading.succeeded("following the node object");
                self.add_first_events(&node);
                let answer_time = self.watch.answer_time();
                self.first_write.get_or_insert_with(|| Instant::now() + first_delay(answer_time));
                if self.node.as_ref().is_none_or(|known| !node.is_older_than(known)) {
                    self.set_node(node);
                    self.select_configuration();
                }
            }
            Ok(None) => {
                tracing::warn!(node = self.report.node, "the node object was deleted");
                self.node = None;
            }
            Err(error) => {
                self.reading.wait("cannot follow the node object", &error, self.watch.pause());
            }
        }
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

    fn set_node(&mut self, node: Node) {
        if let (Some(feature), Some(known)) = (&mut self.report.feature, &self.node) {
            feature.node_changed(known, &node);
        }
        self.node = Some(node);
    }

    fn select_configuration(&mut self) {
        if let (Some(selection), Some(node)) = (&mut self.report.selection, &self.node) {
            selection.follow(node.label(LABEL));
        }
    }

    /// Sends what is due, and returns when there may be more.
    async fn write(&mut self) -> Option<Instant> {
        if let Some(at) = self.first_write.filter(|at| *at > Instant::now()) {
            return Some(at);
        }
        let node = self.write_node().await;
        let feature = self.write_feature().await;
        [node, feature].into_iter().flatten().min()
    }

    /// Applies the object of Node Feature Discovery. Its failures delay nothing else.
    async fn write_feature(&mut self) -> Option<Instant> {
        let (feature, node) = (self.report.feature.as_mut()?, self.node.as_ref()?);
        let due = feature.due(node)?;
        let due = self.labelling.next.map_or(due, |at| at.max(due));
        if due > Instant::now() {
            return Some(due);
        }
        match feature.apply(&mut self.client, &self.report.node, node).await {
            Ok(()) => self.labelling.succeeded("the API server accepts the NodeFeature object"),
            Err(error) => self.labelling.failed("cannot apply the NodeFeature object", &error),
        }
        self.labelling.next
    }

    /// Sends the changes of the node and the Events that are due.
    async fn write_node(&mut self) -> Option<Instant> {
        loop {
            let now = Instant::now();
            if let Some(at) = self.writing.next.filter(|at| *at > now) {
                return Some(at);
            }
            let node = self.node.as_ref()?;
            let startup_taint = self.report.startup_taint.as_deref();
            let change = next_change(node, self.desired.as_ref()?, startup_taint);
            let repeats = self.last_change.as_ref().filter(|last| Some(&last.0) == change.as_ref());
            let change_due = repeats.map_or(now, |(_, at)| *at + REPEAT);
            let event_due = self.events.due(now);
            let written = match change {
                Some(change) if change_due <= now => self.change(change).await,
                _ if event_due.is_some_and(|at| at <= now) => self.report_event().await,
                Some(_) => return Some(event_due.map_or(change_due, |at| at.min(change_due))),
                None => return event_due,
            };
            match written {
                Ok(()) => self.writing.succeeded("the API server accepts changes of the node"),
                Err(error) => self.writing.failed("cannot change the node object", &error),
            }
        }
    }

    async fn change(&mut self, change: Change) -> Result<(), ClusterError> {
        let Some(node) = &self.node else { return Ok(()) };
        let (name, client) = (&self.report.node, &mut self.client);
        let changed = match &change {
            Change::Labels(labels) => client.apply_labels(name, MANAGER, labels).await,
            Change::Condition(condition) => {
                client.apply_condition(name, MANAGER, node, condition, SystemTime::now()).await
            }
            Change::Taints(taints) => client.set_taints(name, MANAGER, node, taints).await,
        }?;
        match &change {
            Change::Labels(labels) => tracing::info!(labels = labels.len(), "labels applied"),
            Change::Condition(condition) => tracing::info!(
                status = condition.status,
                reason = condition.reason,
                "condition set"
            ),
            Change::Taints(_) => {
                tracing::info!(taint = self.report.startup_taint, "startup taint removed");
            }
        }
        self.set_node(changed);
        self.last_change = Some((change, Instant::now()));
        Ok(())
    }

    async fn report_event(&mut self) -> Result<(), ClusterError> {
        let (Some(node), Some(event)) = (&self.node, self.events.first()) else { return Ok(()) };
        let now = SystemTime::now();
        self.client.report(&self.report.node, node, MANAGER, event, now).await?;
        tracing::info!(reason = event.reason, device = event.subject, "Event reported");
        self.events.reported();
        Ok(())
    }
}

impl Attempts {
    fn succeeded(&mut self, what: &str) {
        if self.next.take().is_some() {
            tracing::info!("{what} again");
        }
        self.retry.succeeded();
        self.failures = RepeatedText::default();
    }

    fn failed(&mut self, what: &str, error: &ClusterError) {
        let delay = self.retry.failed(error.retry_after());
        self.wait(what, error, delay);
    }

    /// After a failure whose delay is known.
    fn wait(&mut self, what: &str, error: &ClusterError, delay: Duration) {
        self.next = Some(Instant::now() + delay);
        let (text, hint) = (cli::error_chain(error), error.hint());
        if self.failures.is_due(&text) {
            let retry_in_s = delay.as_secs_f32();
            tracing::warn!(error = text, hint, retry_in_s, "{what}");
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
