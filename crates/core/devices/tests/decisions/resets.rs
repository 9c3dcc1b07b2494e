//! Devices whose driver is reset again and again.

use std::num::NonZeroU32;
use std::time::Duration;

use devices::report::{EventReason, NodeReport, device_events};
use devices::{
    Catalog, DeviceSet, Health, HostSnapshot, Luid, ModelPolicy, Moment, PnpId, ResetHistory,
    ResetLimit,
};

use crate::hosts::{NVIDIA, catalog, gpu, host, wddm};

fn minute(minutes: u64) -> Moment {
    Moment(Duration::from_mins(minutes))
}

/// Unhealthy after three resets in ten minutes.
fn limited() -> Catalog {
    let [count, minutes] = [3, 10].map(|number| NonZeroU32::new(number).unwrap());
    let unhealthy_after_resets = Some(ResetLimit { count, minutes });
    catalog([ModelPolicy { unhealthy_after_resets, ..wddm(1) }])
}

/// A daemon that records the counters of one GPU.
struct Node {
    catalog: Catalog,
    snapshot: HostSnapshot,
    history: ResetHistory,
    set: DeviceSet,
}

impl Node {
    fn new(catalog: Catalog) -> Node {
        let snapshot = host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]);
        let set = DeviceSet::next(None, catalog.offer(&snapshot), minute(0));
        Node { catalog, snapshot, history: ResetHistory::default(), set }
    }

    /// The reason why the first GPU is unhealthy, when its counter is read.
    fn read(&mut self, counter: u64, at: u64) -> Option<String> {
        let luid = self.set.resources[0].entries()[0].device.luid;
        self.history.record(&self.set, &[(luid, counter), (Luid(1002), 7)], minute(at));
        self.advance(at)
    }

    fn advance(&mut self, at: u64) -> Option<String> {
        self.snapshot.resets = self.history.at(minute(at));
        let offer = self.catalog.offer(&self.snapshot);
        self.set = DeviceSet::next(Some(&self.set), offer, minute(at));
        let [first, second] = self.set.resources[0].entries() else { panic!("two GPUs") };
        assert_eq!(second.health, Health::Healthy);
        match first.health {
            Health::Healthy => None,
            Health::Unhealthy(reason) => Some(reason.to_string()),
        }
    }
}

#[test]
fn a_device_is_unhealthy_while_enough_resets_are_recent() {
    let mut node = Node::new(limited());
    assert_eq!(node.read(5, 0), None, "resets before the start are not dated");
    assert_eq!(node.read(6, 1), None);
    assert_eq!(node.read(7, 4), None);
    let reason = "the driver was reset as often as unhealthyAfterResets says";
    assert_eq!(node.read(8, 5).as_deref(), Some(reason));
    assert_eq!(node.advance(10).as_deref(), Some(reason));
    assert_eq!(node.advance(11), None);
    assert_eq!(node.advance(15), None);
    assert_eq!(node.read(12, 16).as_deref(), Some(reason));
}

/// More resets, and fewer when the first one is old, change nothing for the kubelet.
#[test]
fn a_device_that_is_reset_again_and_again_is_one_event() {
    let mut node = Node::new(limited());
    let mut events = Vec::new();
    for (counter, at) in [(0, 0), (2, 1), (4, 2), (7, 3), (7, 12), (7, 14)] {
        let before = node.set.clone();
        node.read(counter, at);
        events.extend(
            device_events(&NodeReport::of(&before), &NodeReport::of(&node.set))
                .into_iter()
                .map(|event| event.reason),
        );
    }
    assert_eq!(events, [EventReason::Unhealthy, EventReason::Recovered]);
}

#[test]
fn every_reset_is_reported_once() {
    let node = Node::new(limited());
    let mut history = ResetHistory::default();
    let mut read = |counter| history.record(&node.set, &[(Luid(1001), counter)], minute(1));
    assert_eq!(read(5), []);
    assert_eq!(read(7), [(PnpId::new(r"PCI\VEN_10DE\1&0"), 2)]);
    assert_eq!(read(7), []);
}

/// A driver that is started again has a new LUID and a new counter.
#[test]
fn a_counter_that_begins_again_counts_from_0() {
    let mut node = Node::new(limited());
    assert_eq!(node.read(5, 0), None);
    node.snapshot.adapters[0].luid = Luid(77);
    assert_eq!(node.advance(0), None);
    assert!(node.read(3, 1).is_some());
    assert_eq!(node.read(1, 20), None, "only one since then");
    assert!(node.read(3, 21).is_some());
}

#[test]
fn resets_of_a_device_that_is_spelled_otherwise_count() {
    let mut node = Node::new(limited());
    assert_eq!(node.read(0, 0), None);
    assert_eq!(node.read(2, 1), None);
    node.snapshot.adapters[0].pnp.as_mut().unwrap().id = PnpId::new(r"pci\ven_10de\1&0");
    assert_eq!(node.advance(2), None);
    assert!(node.read(3, 3).is_some());
}

#[test]
fn without_a_limit_resets_have_no_effect() {
    let mut node = Node::new(catalog([wddm(1)]));
    assert_eq!(node.read(0, 0), None);
    assert_eq!(node.read(1000, 1), None);
    assert!(!node.catalog.has_reset_limit() && limited().has_reset_limit());
}
