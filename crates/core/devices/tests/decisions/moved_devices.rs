//! Devices that belong to another resource than before.

use std::time::Duration;

use devices::{Catalog, DeviceMatch, DeviceSet, DriverModel, Moment, ResourceRule};
use host::{Adapter, Attribute, Vendor};
use report::{
    DeviceEvent, DeviceResources, NodeReport, UnhealthyKind, device_events, devices_healthy, labels,
};

use crate::hosts::{NVIDIA, catalog, gpu, host, model, wddm, with_rules};

const TO_COMPUTE: &str =
    r"PCI\VEN_10DE\1&0: directx.microsoft.com/display, directx.microsoft.com/compute";
const TO_DISPLAY: &str =
    r"PCI\VEN_10DE\1&0: directx.microsoft.com/compute, directx.microsoft.com/display";

/// GPU number `n` in MCDM mode.
fn mcdm(n: i64) -> Adapter {
    Adapter { attributes: [Attribute::D3d12CoreCompute].into_iter().collect(), ..gpu(n, NVIDIA) }
}

/// A daemon, and what it lists.
struct Daemon {
    catalog: Catalog,
    set: DeviceSet,
}

impl Daemon {
    fn new(models: &[DriverModel]) -> Daemon {
        let catalog = catalog(models.iter().map(|name| model(*name)));
        Daemon { catalog, set: DeviceSet::default() }
    }

    /// The report of the daemon on a host with these adapters.
    fn sees(&mut self, adapters: Vec<Adapter>) -> NodeReport {
        let offer = self.catalog.offer(&host(adapters));
        self.set = DeviceSet::next(Some(&self.set), offer, Moment::default());
        NodeReport::of(&self.set)
    }

    /// The report of a host without adapters when every grace period has expired.
    fn after_an_hour(&mut self) -> NodeReport {
        let offer = self.catalog.offer(&host(vec![]));
        self.set = DeviceSet::next(Some(&self.set), offer, Moment(Duration::from_hours(1)));
        NodeReport::of(&self.set)
    }
}

/// Each device that moved, with both resources.
fn moves(resources: &mut DeviceResources, report: &NodeReport) -> Vec<String> {
    let moved = resources.update(report).into_iter();
    moved.map(|moved| format!("{}: {}, {}", moved.id, moved.from, moved.to)).collect()
}

#[test]
fn another_driver_model_moves_a_device_once_also_after_its_grace_period() {
    let mut node = Daemon::new(&[DriverModel::Wddm, DriverModel::Mcdm]);
    let mut resources = DeviceResources::default();
    let mut sees = |adapters| moves(&mut resources, &node.sees(adapters));
    assert_eq!(sees(vec![gpu(1, NVIDIA)]), [""; 0], "a device that is new has not moved");
    assert_eq!(sees(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]), [""; 0]);
    assert_eq!(sees(vec![mcdm(1), gpu(2, NVIDIA)]), [TO_COMPUTE]);
    assert_eq!(sees(vec![mcdm(1), gpu(2, NVIDIA)]), [""; 0]);
    // Whatever else happens to it.
    let mut broken = mcdm(1);
    broken.pnp.as_mut().unwrap().problem_code = 43;
    assert_eq!(sees(vec![broken]), [""; 0]);
    assert_eq!(sees(vec![]), [""; 0]);

    let without = node.after_an_hour();
    assert_eq!(without.devices().count(), 0);
    assert_eq!(moves(&mut resources, &without), [""; 0]);
    assert_eq!(moves(&mut resources, &node.sees(vec![gpu(1, NVIDIA)])), [TO_DISPLAY]);
}

/// A daemon for each driver model. Whichever notices the change first, there is one move.
#[test]
fn two_daemons_that_notice_a_change_one_after_the_other_move_a_device_once() {
    let mut daemons = [DriverModel::Wddm, DriverModel::Mcdm].map(|model| Daemon::new(&[model]));
    let before = daemons.each_mut().map(|daemon| daemon.sees(vec![gpu(1, NVIDIA)]));
    let after = daemons.each_mut().map(|daemon| daemon.sees(vec![mcdm(1)]));
    let not_running = NodeReport::default();
    for meanwhile in [[&after[0], &before[1]], [&before[0], &after[1]]] {
        let mut resources = DeviceResources::default();
        let mut both = |daemons: [&NodeReport; 2]| {
            moves(&mut resources, &NodeReport::merged(daemons.map(NodeReport::clone)))
        };
        assert_eq!(both(before.each_ref()), [""; 0]);
        let moved = [both(meanwhile), both(after.each_ref())].concat();
        assert_eq!(moved, [TO_COMPUTE]);
        assert_eq!(both([&after[0], &not_running]), [""; 0]);
        assert_eq!(both(after.each_ref()), [""; 0]);
    }
}

/// What one daemon with both driver models would report: labels, conditions and Events.
#[test]
fn two_daemons_report_what_one_would() {
    let hosts = [
        vec![gpu(1, NVIDIA), gpu(2, NVIDIA)],
        vec![mcdm(1), gpu(2, NVIDIA)],
        vec![mcdm(1), mcdm(2)],
        vec![gpu(1, NVIDIA), mcdm(2)],
        vec![gpu(1, NVIDIA)],
        vec![gpu(1, NVIDIA), gpu(2, NVIDIA)],
    ];
    let counts = |report: &NodeReport| {
        let mut counts = labels(report, true);
        let healthy = devices_healthy(report);
        counts.insert("healthy".to_owned(), healthy.message.to_string());
        counts
    };
    for order in [[0, 1], [1, 0]] {
        let models = [DriverModel::Wddm, DriverModel::Mcdm];
        let mut one = Daemon::new(&models);
        let mut two = models.map(|model| Daemon::new(&[model]));
        let mut events_before = [NodeReport::default(), NodeReport::default()];
        for (number, adapters) in hosts.iter().enumerate() {
            let one = one.sees(adapters.clone());
            let two = two.each_mut().map(|daemon| daemon.sees(adapters.clone()));
            let two = NodeReport::merged(order.map(|n| two[n].clone()));
            let expected: Vec<DeviceEvent> = device_events(&events_before[0], &one);
            let found = device_events(&events_before[1], &two);
            assert_eq!(counts(&two), counts(&one), "{number}");
            assert_eq!(found.len(), expected.len(), "{number}: {found:?}");
            events_before = [one, two];
        }
    }
}

#[test]
fn a_device_counts_once_however_its_daemons_list_it() {
    let mut wddm = Daemon::new(&[DriverModel::Wddm]);
    let mut mcdm_daemon = Daemon::new(&[DriverModel::Mcdm]);
    let display = wddm.sees(vec![gpu(1, NVIDIA)]);
    let display_removed = wddm.sees(vec![mcdm(1)]);
    let compute = mcdm_daemon.sees(vec![mcdm(1)]);
    let compute_removed = mcdm_daemon.sees(vec![]);
    let mut compute_unreadable = compute_removed.clone();
    let device = &mut compute_unreadable.resources[0].devices[0];
    device.unhealthy.as_mut().unwrap().kind = UnhealthyKind::Unreadable;
    for (first, second, expected) in [
        (&display_removed, &compute, "directx.microsoft.com/compute true"),
        (&display, &compute_removed, "directx.microsoft.com/display true"),
        (&display, &compute_unreadable, "directx.microsoft.com/display true"),
        // Both have it for a moment.
        (&display, &compute, "directx.microsoft.com/compute true"),
        (&display_removed, &compute_removed, "directx.microsoft.com/compute false"),
    ] {
        for reports in [[first, second], [second, first]] {
            let merged = NodeReport::merged(reports.map(NodeReport::clone));
            let entries = merged.resources.iter().flat_map(|resource| {
                resource
                    .devices
                    .iter()
                    .map(move |d| format!("{} {}", resource.name, d.is_healthy()))
            });
            assert_eq!(entries.collect::<Vec<_>>(), [expected]);
            assert_eq!(merged.resources.len(), 2, "a resource without devices stays");
        }
    }
}

#[test]
fn another_configuration_moves_devices_and_their_events_name_both_resources() {
    let rule = ResourceRule {
        name: "example.com/gpu".parse().unwrap(),
        matches: DeviceMatch { vendor: Some(Vendor::Nvidia), ..DeviceMatch::default() },
        replicas: None,
        allocation: None,
        visibility: None,
    };
    let seen = host(vec![gpu(1, NVIDIA)]);
    let set = DeviceSet::next(None, catalog([wddm(1)]).offer(&seen), Moment::default());
    let mut resources = DeviceResources::default();
    assert_eq!(resources.update(&NodeReport::of(&set)), []);
    let set = set.reconfigured(catalog([with_rules(wddm(1), vec![rule])]).offer(&seen));
    let moved = resources.update(&NodeReport::of(&set));
    let events: Vec<DeviceEvent> = moved.into_iter().map(DeviceEvent::from).collect();
    let note = r"device PCI\VEN_10DE\1&0 (GPU 1) moved from the resource directx.microsoft.com/display to example.com/gpu, which pods must request now";
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((<&str>::from(event.reason), event.note.as_str()), ("DirectXDeviceMoved", note));
    assert!(event.reason.is_warning());
}
