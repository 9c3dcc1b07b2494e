//! What the device plugin of the node has reported until now. Pure.
//!
//! A daemon that ends is usually back within seconds, so nothing is forgotten at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use devices::ResourceName;
use host::{ComputeCapability, PnpId};
use plugin_status::answering_daemons::{
    NodeListing, NodeState, ServedResource, SilenceReason, SilentDaemon,
};
use report::{Message, NodeReport, ReportedResource};
use tokio::time::Instant;

/// How long the devices of a daemon that has ended are kept while another one reports. The kubelet
/// keeps the capacity of its resources as long (`endpointStopGracePeriod`).
const RETENTION: Duration = Duration::from_mins(5);

/// How long a daemon may report nothing before that is an outage. So long, labels and taint wait
/// after a start for a daemon that may be starting, too.
const OUTAGE: Duration = Duration::from_mins(1);

/// What the daemons have reported.
#[derive(Default)]
pub(crate) struct PluginHistory {
    /// What they list now, or the last time that they were known to.
    listing: Option<NodeListing>,
    /// When they listed something for the first time.
    first: Option<Instant>,
    /// The resources of daemons that have ended, or whose devices are not known any more.
    gone: BTreeMap<ResourceName, GoneResource>,
    /// Since when the devices of a daemon are not known while another one reports, by its name.
    silent: BTreeMap<String, Instant>,
    silence: Option<Silence>,
}

struct GoneResource {
    resource: ReportedResource,
    /// How it was served.
    served: ServedResource,
    since: Instant,
}

/// The devices are not reported.
struct Silence {
    state: NodeState,
    since: Instant,
}

/// The devices are not reported, for longer than a restart takes.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    /// The reason, for programs.
    pub(crate) reason: &'static str,
    /// The reason of an Event about it.
    pub(crate) event: &'static str,
    /// The reason, for administrators.
    pub(crate) message: Message,
}

impl PluginHistory {
    /// Adds what the daemons report now.
    pub(crate) fn update(&mut self, state: NodeState, now: Instant) {
        let since = self.silence.as_ref().map_or(now, |silence| silence.since);
        match state {
            NodeState::Known(listing) => {
                self.silence = None;
                self.first.get_or_insert(now);
                self.silent.retain(|name, _| listing.silent.iter().any(|d| d.name == *name));
                for daemon in &listing.silent {
                    self.silent.entry(daemon.name.clone()).or_insert(now);
                }
                self.listed(*listing, since);
            }
            state => self.silence = Some(Silence { state, since }),
        }
    }

    /// `since` is when a daemon has ended that listed something before.
    fn listed(&mut self, mut listing: NodeListing, since: Instant) {
        self.keep_compute_capabilities(&mut listing.node);
        let running: BTreeSet<u64> =
            listing.served.values().map(|served| served.instance).collect();
        if let Some(before) = self.listing.take() {
            for mut resource in before.node.resources {
                // A daemon that runs and no longer lists a resource has another configuration.
                let served = before.served.get(&resource.name);
                let gone = served.filter(|served| !running.contains(&served.instance));
                if let Some(served) = gone {
                    // Nobody watches it any more.
                    for device in &mut resource.devices {
                        device.license = None;
                    }
                    let gone = GoneResource { resource, served: served.clone(), since };
                    self.gone.entry(gone.resource.name.clone()).or_insert(gone);
                }
            }
        }
        self.gone.retain(|name, _| !listing.served.contains_key(name));
        // Another daemon lists them under another name.
        let devices = listing.node.devices().filter(|device| device.is_present());
        let listed: BTreeSet<&PnpId> = devices.map(|device| &device.id).collect();
        for gone in self.gone.values_mut() {
            gone.resource.devices.retain(|device| !listed.contains(&device.id));
        }
        self.gone.retain(|_, gone| !gone.resource.devices.is_empty());
        self.listing = Some(listing);
    }

    /// A plugin knows the compute capabilities some time after it has started. Until then, those
    /// that it has reported before count, so that labels stay over a restart.
    fn keep_compute_capabilities(&self, node: &mut NodeReport) {
        let before = self.listing.iter().flat_map(|listing| listing.node.devices());
        let gone = self.gone.values().flat_map(|gone| &gone.resource.devices);
        let known: HashMap<&PnpId, ComputeCapability> = before
            .chain(gone)
            .filter_map(|device| Some((&device.id, device.compute_capability?)))
            .collect();
        for device in node.resources.iter_mut().flat_map(|resource| &mut resource.devices) {
            if device.compute_capability.is_none() {
                device.compute_capability = known.get(&device.id).copied();
            }
        }
    }

    /// What the daemons list, or have listed until now.
    pub(crate) fn listing(&self, now: Instant) -> Option<NodeListing> {
        let mut listing = self.listing.clone()?;
        let kept = self.gone.values().filter(|gone| now < gone.since + RETENTION);
        let mut reports = vec![std::mem::take(&mut listing.node)];
        for GoneResource { resource, served, since } in kept {
            let mut served = served.clone();
            // A daemon that does not answer for a moment still serves.
            if self.silent.is_empty() || now >= *since + OUTAGE {
                served.not_registered = Some("its daemon is not running".to_owned().into());
            }
            listing.served.insert(resource.name.clone(), served);
            reports.push(NodeReport {
                host: reports[0].host.clone(),
                resources: vec![resource.clone()],
                ..NodeReport::default()
            });
        }
        listing.node = NodeReport::merged(reports);
        Some(listing)
    }

    /// Why not everything is known yet that the node may have, for a minute after the first report:
    /// a daemon whose devices are not known, or a driver model without a daemon.
    pub(crate) fn waits_for(&self, now: Instant) -> Option<Message> {
        let listing = self.listing.as_ref()?;
        self.first.filter(|first| now < *first + OUTAGE)?;
        let silent = listing.silent.first().map(SilentDaemon::message);
        silent.or_else(|| {
            let model = listing.free_models.first()?;
            Some(format!("no plugin for the driver model {model} answers yet").into())
        })
    }

    /// The daemon whose devices have not been known for longer than a restart takes, while another
    /// one reports.
    pub(crate) fn partial_outage(&self, now: Instant) -> Option<Outage> {
        let silent = &self.listing.as_ref().filter(|_| self.silence.is_none())?.silent;
        let is_long = |daemon: &&SilentDaemon| {
            self.silent.get(&daemon.name).is_some_and(|since| now >= *since + OUTAGE)
        };
        silent.iter().find(is_long).map(Outage::of)
    }

    /// What the daemons list while they answer.
    pub(crate) fn answering(&self, now: Instant) -> Option<NodeListing> {
        self.listing(now).filter(|_| self.silence.is_none())
    }

    /// Why the devices are not reported, if they have not been for long.
    pub(crate) fn outage(&self, now: Instant) -> Option<Outage> {
        let silence = self.silence.as_ref().filter(|silence| now >= silence.since + OUTAGE)?;
        Some(match &silence.state {
            NodeState::NotReported(daemon) => Outage::of(daemon),
            NodeState::NotServed | NodeState::Known(_) => Outage {
                reason: "PluginNotRunning",
                event: "DirectXPluginNotRunning",
                message: "no device plugin serves devices on this node".to_owned().into(),
            },
        })
    }

    /// When something changes that depends only on the time.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        let outage = self.silence.as_ref().map(|silence| silence.since + OUTAGE);
        let is_silent = !self.silent.is_empty();
        let unanswered = self.gone.values().filter(|_| is_silent).map(|gone| gone.since + OUTAGE);
        let ends = self.gone.values().map(|gone| gone.since + RETENTION).chain(unanswered);
        let silent = self.silent.values().map(|since| *since + OUTAGE);
        let first = self.waits_for(now).and(self.first).map(|first| first + OUTAGE);
        let times = ends.chain(outage).chain(silent).chain(first);
        times.filter(|time| *time > now).min()
    }
}

impl Outage {
    /// The outage of a daemon.
    fn of(daemon: &SilentDaemon) -> Outage {
        let (reason, event) = match daemon.reason {
            SilenceReason::Busy => ("PluginNotResponding", "DirectXPluginNotResponding"),
            SilenceReason::OtherVersion(_) => ("PluginVersion", "DirectXPluginVersion"),
            SilenceReason::Pending(_) => ("DevicesPending", "DirectXDevicesPending"),
            SilenceReason::NotRunning => ("PluginNotRunning", "DirectXPluginNotRunning"),
        };
        Outage { reason, event, message: daemon.message() }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use devices::DriverModel;
    use plugin_status::plugin_report::PluginVersion;

    use super::*;

    /// The resource with this name, and devices with these IDs.
    fn resource(name: &str, devices: &[&str]) -> ReportedResource {
        let device = |id: &&str| {
            serde_json::from_value(serde_json::json!({
                "id": id, "description": "GPU", "vendorId": 1, "deviceId": 2,
                "driverModel": "wddm", "integrated": false, "detachable": false,
            }))
            .unwrap()
        };
        ReportedResource {
            name: name.parse().unwrap(),
            replicas: NonZeroU32::MIN,
            devices: devices.iter().map(device).collect(),
        }
    }

    /// What the daemon with this number lists.
    fn listed(instance: u64, resources: Vec<ReportedResource>) -> NodeListing {
        NodeListing::registered(NodeReport { resources, ..NodeReport::default() }, instance)
    }

    fn both(mut first: NodeListing, second: NodeListing) -> NodeState {
        first.node.resources.extend(second.node.resources);
        first.served.extend(second.served);
        NodeState::Known(Box::new(first))
    }

    fn known(listing: NodeListing) -> NodeState {
        NodeState::Known(Box::new(listing))
    }

    fn silent(reason: SilenceReason) -> SilentDaemon {
        SilentDaemon { name: "the plugin at /x/mcdm-1.sock".to_owned(), reason }
    }

    fn not_reported(reason: SilenceReason) -> NodeState {
        NodeState::NotReported(silent(reason))
    }

    fn display(instance: u64) -> NodeListing {
        listed(instance, vec![resource("a/display", &["D1", "D2"])])
    }

    fn compute(instance: u64) -> NodeListing {
        listed(instance, vec![resource("a/compute", &["C1"])])
    }

    /// The names of the resources, each with its devices.
    fn seen(history: &PluginHistory, now: Instant) -> Vec<String> {
        let listing = history.listing(now).unwrap_or_default();
        let texts = listing.node.resources.iter().map(|resource| {
            let ids: Vec<String> = resource.devices.iter().map(|d| d.id.to_string()).collect();
            format!("{}: {}", resource.name, ids.join(" "))
        });
        texts.collect()
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_devices_of_a_daemon_that_has_ended_are_kept_as_long_as_the_kubelet_does() {
        let start = Instant::now();
        let mut history = PluginHistory::default();
        history.update(both(display(1), compute(2)), start);
        history.update(known(display(1)), start + SECOND);
        let end = start + SECOND + RETENTION;
        assert_eq!(history.deadline(start + SECOND), Some(end));
        assert_eq!(seen(&history, end - SECOND), ["a/display: D1 D2", "a/compute: C1"]);
        let listing = history.listing(end - SECOND).unwrap();
        let gone = &listing.served[&"a/compute".parse().unwrap()];
        assert_eq!(gone.not_registered.as_ref().unwrap().own(), "its daemon is not running");
        assert_eq!(seen(&history, end), ["a/display: D1 D2"]);
        assert_eq!(history.deadline(end), None);

        // It is back before its time is up.
        history.update(both(display(1), compute(3)), start + 2 * SECOND);
        assert_eq!(seen(&history, end), ["a/display: D1 D2", "a/compute: C1"]);
    }

    #[test]
    fn a_resource_that_a_running_daemon_no_longer_lists_is_gone_at_once() {
        let start = Instant::now();
        let mut history = PluginHistory::default();
        let mut two = display(1);
        two.node.resources.push(resource("a/other", &["O1"]));
        history.update(known(NodeListing::registered(two.node, 1)), start);
        history.update(known(display(1)), start);
        assert_eq!(seen(&history, start), ["a/display: D1 D2"]);
    }

    #[test]
    fn a_device_that_another_daemon_lists_under_another_name_counts_once() {
        let start = Instant::now();
        let mut history = PluginHistory::default();
        history.update(known(display(1)), start);
        let renamed = listed(2, vec![resource("a/display.shared", &["D1"])]);
        history.update(known(renamed.clone()), start);
        assert_eq!(seen(&history, start), ["a/display.shared: D1", "a/display: D2"]);
        let all = listed(2, vec![resource("a/display.shared", &["D1", "D2"])]);
        history.update(known(all), start);
        assert_eq!(seen(&history, start), ["a/display.shared: D1 D2"]);
        assert_eq!(history.deadline(start), None);
    }

    #[test]
    fn what_is_not_reported_stays_and_is_an_outage_after_a_minute() {
        let start = Instant::now();
        let version = PluginVersion { format: 2, version: "9.0.0".to_owned() };
        for (state, reason) in [
            (NodeState::NotServed, "PluginNotRunning"),
            (not_reported(SilenceReason::Busy), "PluginNotResponding"),
            (not_reported(SilenceReason::OtherVersion(version)), "PluginVersion"),
            (not_reported(SilenceReason::Pending("it hangs".to_owned())), "DevicesPending"),
        ] {
            let mut history = PluginHistory::default();
            history.update(known(display(1)), start);
            history.update(state.clone(), start);
            assert_eq!(history.deadline(start), Some(start + OUTAGE));
            assert!(history.outage(start + OUTAGE - SECOND).is_none());
            // Another state does not begin another minute.
            history.update(NodeState::NotServed, start + SECOND);
            history.update(state, start + 2 * SECOND);
            let outage = history.outage(start + OUTAGE).unwrap();
            assert_eq!((outage.reason, outage.event), (reason, &*format!("DirectX{reason}")));
            assert_eq!(seen(&history, start + 100 * OUTAGE), ["a/display: D1 D2"]);
            history.update(known(display(2)), start + 100 * OUTAGE);
            assert!(history.outage(start + 200 * OUTAGE).is_none());
        }
    }

    /// A daemon that hangs counts as one that has ended, and is named.
    #[test]
    fn a_silent_daemon_hides_no_other_one() {
        let start = Instant::now();
        let compute_name = "a/compute".parse().unwrap();
        for (reason, event) in [
            (SilenceReason::Busy, "DirectXPluginNotResponding"),
            (SilenceReason::OtherVersion(PluginVersion::default()), "DirectXPluginVersion"),
            (SilenceReason::Pending("it hangs".to_owned()), "DirectXDevicesPending"),
            (SilenceReason::NotRunning, "DirectXPluginNotRunning"),
        ] {
            let mut history = PluginHistory::default();
            history.update(both(display(1), compute(2)), start);
            let mut one = display(1);
            one.silent = vec![silent(reason)];
            let message = one.silent[0].message().to_string();
            history.update(known(one.clone()), start + SECOND);
            let now = start + OUTAGE;
            assert_eq!(seen(&history, now), ["a/display: D1 D2", "a/compute: C1"]);
            let served = |now| history.listing(now).unwrap().served[&compute_name].clone();
            assert!(served(now).not_registered.is_none(), "it may answer again at once");
            assert!(history.outage(now).is_none() && history.partial_outage(now).is_none());
            assert_eq!(history.deadline(now), Some(now + SECOND));
            let now = now + SECOND;
            assert!(served(now).not_registered.is_some());
            assert!(history.outage(now).is_none());
            let outage = history.partial_outage(now).unwrap();
            assert_eq!((outage.event, outage.message.to_string()), (event, message));
            assert_eq!(seen(&history, start + RETENTION), ["a/display: D1 D2", "a/compute: C1"]);
            assert_eq!(seen(&history, start + SECOND + RETENTION), ["a/display: D1 D2"]);
            history.update(both(display(1), compute(2)), now);
            assert!(history.partial_outage(now).is_none());
        }
    }

    #[test]
    fn after_a_start_a_driver_model_without_a_daemon_is_waited_for_at_most_a_minute() {
        let start = Instant::now();
        let mut history = PluginHistory::default();
        let first = start + 3 * OUTAGE;
        history.update(NodeState::NotServed, start);
        assert!(history.waits_for(first).is_none());
        let mut one = display(1);
        one.free_models = vec![DriverModel::Mcdm];
        history.update(known(one.clone()), first);
        let why = "no plugin for the driver model mcdm answers yet";
        assert_eq!(history.waits_for(first + OUTAGE - SECOND).unwrap().own(), why);
        assert_eq!(history.deadline(first), Some(first + OUTAGE));
        assert!(history.waits_for(first + OUTAGE).is_none());
        history.update(both(display(1), compute(2)), first + SECOND);
        assert!(history.waits_for(first + SECOND).is_none());
        // Later, a daemon that ends is one whose devices are kept.
        history.update(known(one), first + OUTAGE);
        assert!(history.waits_for(first + OUTAGE).is_none());
    }

    #[test]
    fn a_device_that_moves_to_another_daemon_counts_once() {
        let start = Instant::now();
        let mut history = PluginHistory::default();
        let mut removed = compute(2);
        removed.node.resources[0].devices[0].id = PnpId::new("D1");
        removed.node.resources[0].devices[0].unhealthy =
            serde_json::from_value(serde_json::json!({"kind": "removed", "text": "gone"})).ok();
        history.update(both(display(1), removed.clone()), start);
        // Its daemon ends; the other one has lost it.
        history.update(known(removed), start + SECOND);
        assert_eq!(seen(&history, start + SECOND), ["a/compute: ", "a/display: D1 D2"]);
    }

    /// Both daemons have ended, and only one of them is back.
    #[test]
    fn devices_are_kept_from_the_end_of_their_daemon_on() {
        let start = Instant::now();
        let mut history = PluginHistory::default();
        history.update(both(display(1), compute(2)), start);
        history.update(NodeState::NotServed, start);
        history.update(known(display(3)), start + 2 * SECOND);
        let kept = ["a/display: D1 D2", "a/compute: C1"];
        assert_eq!(seen(&history, start + RETENTION - SECOND), kept);
        assert_eq!(seen(&history, start + RETENTION), kept[..1]);
    }

    /// The compute capability that each device is known to have.
    fn capabilities(history: &PluginHistory) -> Vec<Option<String>> {
        let listing = history.listing(Instant::now()).unwrap();
        let devices = listing.node.devices();
        devices.map(|device| Some(device.compute_capability?.to_string())).collect()
    }

    /// The plugin asks NVML after it has listed its devices.
    #[test]
    fn a_plugin_that_restarts_keeps_the_compute_capabilities() {
        let start = Instant::now();
        let mut with_capability = compute(2);
        let devices = &mut with_capability.node.resources[0].devices;
        devices[0].compute_capability = "8.6".parse().ok();
        let known_86 = [Some("8.6".to_owned())];

        let mut history = PluginHistory::default();
        history.update(known(compute(1)), start);
        assert_eq!(capabilities(&history), [None]);
        history.update(known(with_capability.clone()), start);
        history.update(NodeState::NotServed, start);
        history.update(known(compute(3)), start);
        assert_eq!(capabilities(&history), known_86);

        // Another daemon runs meanwhile.
        let mut history = PluginHistory::default();
        history.update(both(display(1), with_capability), start);
        history.update(known(display(1)), start);
        history.update(both(display(1), compute(3)), start);
        assert_eq!(capabilities(&history)[2..], known_86);
    }

    #[test]
    fn nothing_is_known_before_the_first_report() {
        let now = Instant::now();
        let mut history = PluginHistory::default();
        history.update(NodeState::NotServed, now);
        assert!(history.listing(now).is_none() && history.outage(now).is_none());
        assert!(history.listing(now + OUTAGE).is_none() && history.outage(now + OUTAGE).is_some());
    }
}
