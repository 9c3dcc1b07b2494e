//! What the device plugin of the node has reported until now. Pure.
//!
//! A daemon that ends is usually back within seconds, so nothing is forgotten at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use daemon::answering_daemons::{NodeListing, NodeState, ServedResource};
use devices::report::{NodeReport, ReportedResource};
use devices::{ComputeCapability, PnpId, ResourceName};
use tokio::time::Instant;

/// How long the devices of a daemon that has ended are kept while another one reports. The kubelet
/// keeps the capacity of its resources as long (`endpointStopGracePeriod`).
const RETENTION: Duration = Duration::from_mins(5);

/// How long nothing may be reported before that is an outage.
const OUTAGE: Duration = Duration::from_mins(1);

/// What the daemons have reported.
#[derive(Default)]
pub(crate) struct PluginHistory {
    /// What they list now, or the last time that they were known to.
    listing: Option<NodeListing>,
    /// The resources of daemons that have ended.
    gone: BTreeMap<ResourceName, GoneResource>,
    silence: Option<Silence>,
}

struct GoneResource {
    resource: ReportedResource,
    since: Instant,
}

/// The devices are not reported.
struct Silence {
    state: NodeState,
    since: Instant,
}

/// The devices are not reported, for longer than a restart takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outage {
    /// The reason, for programs.
    pub(crate) reason: &'static str,
    /// The reason of an Event about it.
    pub(crate) event: &'static str,
    /// The reason, for administrators.
    pub(crate) message: String,
}

impl PluginHistory {
    /// Adds what the daemons report now.
    pub(crate) fn update(&mut self, state: NodeState, now: Instant) {
        let since = self.silence.as_ref().map_or(now, |silence| silence.since);
        match state {
            NodeState::Known(listing) => {
                self.silence = None;
                self.listed(*listing, since);
            }
            state => self.silence = Some(Silence { state, since }),
        }
    }

    /// `since` is when a daemon has ended that listed something before.
    fn listed(&mut self, mut now: NodeListing, since: Instant) {
        self.keep_compute_capabilities(&mut now.node);
        let running: BTreeSet<u64> = now.served.values().map(|served| served.instance).collect();
        if let Some(before) = self.listing.take() {
            for mut resource in before.node.resources {
                // A daemon that runs and no longer lists a resource has another configuration.
                let served = before.served.get(&resource.name);
                if served.is_some_and(|served| !running.contains(&served.instance)) {
                    // Nobody watches it any more.
                    for device in &mut resource.devices {
                        device.license = None;
                    }
                    let gone = GoneResource { resource, since };
                    self.gone.entry(gone.resource.name.clone()).or_insert(gone);
                }
            }
        }
        self.gone.retain(|name, _| !now.served.contains_key(name));
        // Another daemon lists them under another name.
        let listed: BTreeSet<&PnpId> = now.node.devices().map(|device| &device.id).collect();
        for gone in self.gone.values_mut() {
            gone.resource.devices.retain(|device| !listed.contains(&device.id));
        }
        self.gone.retain(|_, gone| !gone.resource.devices.is_empty());
        self.listing = Some(now);
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
        for GoneResource { resource, .. } in kept {
            let not_registered = Some("its daemon is not running".to_owned());
            let served = ServedResource { instance: 0, not_registered };
            listing.served.insert(resource.name.clone(), served);
            listing.node.resources.push(resource.clone());
        }
        Some(listing)
    }

    /// What the daemons list while they answer.
    pub(crate) fn answering(&self, now: Instant) -> Option<NodeListing> {
        self.listing(now).filter(|_| self.silence.is_none())
    }

    /// Why the devices are not reported, if they have not been for long.
    pub(crate) fn outage(&self, now: Instant) -> Option<Outage> {
        let silence = self.silence.as_ref().filter(|silence| now >= silence.since + OUTAGE)?;
        Some(match &silence.state {
            NodeState::NotServed | NodeState::Known(_) => Outage {
                reason: "PluginNotRunning",
                event: "DirectXPluginNotRunning",
                message: "no device plugin serves devices on this node".to_owned(),
            },
            NodeState::Busy(_) => Outage {
                reason: "PluginNotResponding",
                event: "DirectXPluginNotResponding",
                message: "the device plugin does not answer".to_owned(),
            },
            NodeState::OtherVersion(version) => Outage {
                reason: "PluginVersion",
                event: "DirectXPluginVersion",
                message: format!(
                    "the device plugin is {version}, which this version of feature discovery \
                     cannot read"
                ),
            },
            NodeState::Pending(why) => Outage {
                reason: "DevicesPending",
                event: "DirectXDevicesPending",
                message: format!("the device plugin does not know the devices yet: {why}"),
            },
        })
    }

    /// When something changes that depends only on the time.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        let outage = self.silence.as_ref().map(|silence| silence.since + OUTAGE);
        let ends = self.gone.values().map(|gone| gone.since + RETENTION);
        ends.chain(outage).filter(|time| *time > now).min()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use daemon::plugin_report::PluginVersion;

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
        assert_eq!(gone.not_registered.as_deref(), Some("its daemon is not running"));
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
            (NodeState::Busy("x".into()), "PluginNotResponding"),
            (NodeState::OtherVersion(version), "PluginVersion"),
            (NodeState::Pending("it hangs".to_owned()), "DevicesPending"),
        ] {
            let mut history = PluginHistory::default();
            history.update(known(display(1)), start);
            history.update(state.clone(), start);
            assert_eq!(history.deadline(start), Some(start + OUTAGE));
            assert_eq!(history.outage(start + OUTAGE - SECOND), None);
            // Another state does not begin another minute.
            history.update(NodeState::NotServed, start + SECOND);
            history.update(state, start + 2 * SECOND);
            let outage = history.outage(start + OUTAGE).unwrap();
            assert_eq!((outage.reason, outage.event), (reason, &*format!("DirectX{reason}")));
            assert_eq!(seen(&history, start + 100 * OUTAGE), ["a/display: D1 D2"]);
            history.update(known(display(2)), start + 100 * OUTAGE);
            assert_eq!(history.outage(start + 200 * OUTAGE), None);
        }
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
