//! Successive device sets: health, devices that are removed and return, replicas.

use std::time::Duration;

use devices::{
    Catalog, DeviceMatch, DeviceSet, Health, ModelPolicy, Moment, ResourceDevices, ResourceRule,
    UnhealthyReason, plan, preferred_allocation,
};
use host::{
    Adapter, AdapterWarning, DriverVersion, HostSnapshot, Luid, PnpId, StoreFiles, Vendor,
    WarningEffect,
};
use report::{NodeReport, device_events};

use crate::hosts::{AMD, NVIDIA, catalog, gpu, host, store, wddm, without_driver_files};

fn at(seconds: u64) -> Moment {
    Moment(Duration::from_secs(seconds))
}

fn step(catalog: &Catalog, before: Option<&DeviceSet>, seen: Vec<Adapter>, now: u64) -> DeviceSet {
    DeviceSet::next(before, catalog.offer(&host(seen)), at(now))
}

fn health(set: &DeviceSet) -> Vec<(i64, Health)> {
    set.resources[0].entries().iter().map(|e| (e.device.luid.0, e.health)).collect()
}

/// In the original plugin devices were always Healthy.
#[test]
fn a_device_is_unhealthy_while_it_has_a_problem_code() {
    let catalog = catalog([wddm(1)]);
    let mut unhealthy = gpu(1, NVIDIA);
    unhealthy.pnp.as_mut().unwrap().problem_code = 43;
    let set = step(&catalog, None, vec![unhealthy, gpu(2, NVIDIA)], 0);
    let reason = UnhealthyReason::ProblemCode(43);
    assert_eq!(health(&set), [(1001, Health::Unhealthy(reason)), (1002, Health::Healthy)]);
    assert_eq!(reason.to_string(), "Windows reports problem code 43");
    assert_eq!(set.deadline(), None);
    let set = step(&catalog, Some(&set), vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 1);
    assert_eq!(health(&set), [(1001, Health::Healthy), (1002, Health::Healthy)]);
}

#[test]
fn a_removed_device_is_unhealthy_for_the_grace_time_and_then_dropped() {
    let catalog = catalog([wddm(1)]);
    let both = step(&catalog, None, vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 0);
    let one = step(&catalog, Some(&both), vec![gpu(2, NVIDIA)], 10);
    let removed = (1001, Health::Unhealthy(UnhealthyReason::Removed));
    assert_eq!(health(&one), [(1002, Health::Healthy), removed]);
    // Later refreshes do not extend the grace period.
    let still = step(&catalog, Some(&one), vec![gpu(2, NVIDIA)], 609);
    assert_eq!(health(&still), [(1002, Health::Healthy), removed]);
    assert_eq!(still.deadline(), Some(at(610)));
    let dropped = step(&catalog, Some(&still), vec![gpu(2, NVIDIA)], 610);
    assert_eq!(health(&dropped), [(1002, Health::Healthy)]);
    assert_eq!(dropped.deadline(), None);

    // A device that returns is healthy, and a later removal has its own grace period.
    let back = step(&catalog, Some(&still), vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 609);
    assert_eq!(health(&back), [(1001, Health::Healthy), (1002, Health::Healthy)]);
    let again = step(&catalog, Some(&back), vec![gpu(2, NVIDIA)], 1000);
    let again = step(&catalog, Some(&again), vec![gpu(2, NVIDIA)], 1599);
    assert_eq!((health(&again).len(), again.deadline()), (2, Some(at(1600))));
}

/// A driver that is installed again is away for less than that.
#[test]
fn a_removed_device_is_gone_after_a_minute() {
    let catalog = catalog([wddm(1)]);
    let gone = |set: &DeviceSet| -> Vec<bool> { set.entries().map(|e| e.is_gone).collect() };
    let both = step(&catalog, None, vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 0);
    let one = step(&catalog, Some(&both), vec![gpu(2, NVIDIA)], 10);
    assert_eq!((gone(&one), one.deadline()), (vec![false, false], Some(at(70))));
    let set = step(&catalog, Some(&one), vec![gpu(2, NVIDIA)], 69);
    assert_eq!((gone(&set), set.deadline()), (vec![false, false], Some(at(70))));
    let set = step(&catalog, Some(&set), vec![gpu(2, NVIDIA)], 70);
    assert_eq!((gone(&set), set.deadline()), (vec![false, true], Some(at(610))));
    let set = step(&catalog, Some(&set), vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 71);
    assert_eq!((gone(&set), set.deadline()), (vec![false, false], None));

    // An adapter that Windows still lists counts in the same way.
    let without_device = || vec![Adapter { pnp: None, ..gpu(1, NVIDIA) }, gpu(2, NVIDIA)];
    let set = step(&catalog, Some(&set), without_device(), 100);
    let set = step(&catalog, Some(&set), without_device(), 160);
    assert_eq!(gone(&set), [false, true]);
}

#[test]
fn a_device_that_returns_with_another_luid_is_healthy() {
    let catalog = catalog([wddm(1)]);
    let set = step(&catalog, None, vec![gpu(1, NVIDIA)], 0);
    let set = step(&catalog, Some(&set), vec![], 1);
    assert_eq!(health(&set), [(1001, Health::Unhealthy(UnhealthyReason::Removed))]);
    let mut back = gpu(1, NVIDIA);
    back.luid = Luid(5);
    let set = step(&catalog, Some(&set), vec![back], 2);
    assert_eq!(health(&set), [(5, Health::Healthy)]);
    assert_eq!(set.deadline(), None);
}

/// What can be seen of a driver that is replaced: the adapter cannot be read, or has no device, or
/// disappears, or has a problem code, or has no files; afterwards it has another LUID.
#[test]
fn a_device_is_unhealthy_while_its_driver_is_replaced() {
    let catalog = catalog([wddm(1)]);
    let set = step(&catalog, None, vec![gpu(1, NVIDIA)], 0);
    let text = "the driver is being updated".to_owned();
    let warning = AdapterWarning { luid: Luid(1001), text, effect: WarningEffect::Unreadable };
    let updating = HostSnapshot { warnings: vec![warning], ..host(vec![]) };
    let set = DeviceSet::next(Some(&set), catalog.offer(&updating), at(1));
    assert_eq!(health(&set), [(1001, Health::Unhealthy(UnhealthyReason::Unreadable))]);
    let without_device = Adapter { pnp: None, ..gpu(1, NVIDIA) };
    let set = step(&catalog, Some(&set), vec![without_device], 2);
    assert_eq!(health(&set), [(1001, Health::Unhealthy(UnhealthyReason::NotAdvertised))]);
    let set = step(&catalog, Some(&set), vec![], 2);
    assert_eq!(health(&set), [(1001, Health::Unhealthy(UnhealthyReason::Removed))]);
    let late = step(&catalog, Some(&set), vec![], 600);
    assert_eq!(late.deadline(), Some(at(601)), "one grace period for all");
    let without_files = |luid| Adapter { luid: Luid(luid), ..without_driver_files(1) };
    let set = step(&catalog, Some(&set), vec![without_files(5)], 3);
    assert_eq!(health(&set), [(5, Health::Unhealthy(UnhealthyReason::NoDriverFiles))]);
    let mut problem = without_files(5);
    problem.pnp.as_mut().unwrap().problem_code = 10;
    let set = step(&catalog, Some(&set), vec![problem], 4);
    assert_eq!(health(&set), [(5, Health::Unhealthy(UnhealthyReason::ProblemCode(10)))]);
    let new = Adapter { luid: Luid(5), ..gpu(1, NVIDIA) };
    assert_eq!(health(&step(&catalog, Some(&set), vec![new], 5)), [(5, Health::Healthy)]);
}

/// Some drivers name no files, and some folders hold only a part of those that are named.
#[test]
fn a_device_with_some_or_no_named_files_is_healthy() {
    let mut some = without_driver_files(1);
    let store = some.driver_store.as_mut().unwrap();
    store.files = StoreFiles::Listed(["runtime32.dll".to_owned()].into());
    let mut none = without_driver_files(2);
    none.driver_store.as_mut().unwrap().copy_to_vm.clear();
    let set = step(&catalog([wddm(1)]), None, vec![some, none], 0);
    assert_eq!(health(&set), [(1001, Health::Healthy), (1002, Health::Healthy)]);
    // Inside a container, the files of the host are not known.
    let mut inside = host(vec![without_driver_files(1)]);
    inside.host.inside_container = true;
    let set = DeviceSet::next(None, catalog([wddm(1)]).offer(&inside), at(0));
    assert_eq!(health(&set), [(1001, Health::Healthy)]);
}

#[test]
fn without_a_grace_time_a_removed_device_is_dropped_immediately() {
    let mut policy = wddm(1);
    policy.removal_grace = Duration::ZERO;
    let catalog = catalog([policy]);
    let set = step(&catalog, None, vec![gpu(1, NVIDIA)], 5);
    let set = step(&catalog, Some(&set), vec![], 5);
    assert_eq!((health(&set), set.deadline()), (vec![], None));
}

/// Windows compares the IDs of devices without case, so the kubelet may hold replicas of a device
/// that is now spelled otherwise.
#[test]
fn a_device_that_is_spelled_otherwise_is_the_same_device() {
    let catalog = catalog([wddm(2)]);
    let mut respelled = gpu(1, NVIDIA);
    respelled.pnp.as_mut().unwrap().id = PnpId::new(r"pci\ven_10de\1&0");
    let before = step(&catalog, None, vec![gpu(1, NVIDIA)], 0);
    let after = step(&catalog, Some(&before), vec![respelled], 1);
    assert_eq!(health(&after), [(1001, Health::Healthy)]);
    assert_eq!(device_events(&NodeReport::of(&before), &NodeReport::of(&after)), []);
    let before = before.resources[0].replicas().collect::<Vec<_>>();
    let resource = &after.resources[0];
    assert!(resource.replicas().eq(before.iter().cloned()));
    assert!(resource.entry(&before[0].id.device).is_some());

    let ids: Vec<String> = before.iter().map(|replica| replica.id.to_string()).collect();
    let spellings = [ids.clone(), vec![ids[0].to_lowercase(), ids[1].clone()]].concat();
    let chosen = preferred_allocation(resource, &spellings, &[], 3).unwrap();
    assert_eq!(chosen, ids, "each replica once, as the kubelet spells it");
    let granted = plan(resource, [ids[0].as_str()], &after.host, &|_| true);
    assert!(granted.is_ok(), "{granted:?}");
}

/// The number of each device, by its LUID.
fn numbers(set: &DeviceSet) -> Vec<(i64, usize)> {
    set.entries().map(|entry| (entry.device.luid.0, entry.number)).collect()
}

/// Otherwise the number of a lost device would name a good one.
#[test]
fn a_device_keeps_its_number_while_it_is_listed() {
    let catalog = catalog([wddm(1)]);
    let all = step(&catalog, None, vec![gpu(1, NVIDIA), gpu(2, NVIDIA), gpu(3, NVIDIA)], 0);
    assert_eq!(numbers(&all), [(1001, 0), (1002, 1), (1003, 2)]);
    let lost = step(&catalog, Some(&all), vec![gpu(2, NVIDIA), gpu(3, NVIDIA)], 10);
    assert_eq!(numbers(&lost), [(1002, 1), (1003, 2), (1001, 0)]);
    let back =
        step(&catalog, Some(&lost), vec![gpu(2, NVIDIA), gpu(1, NVIDIA), gpu(3, NVIDIA)], 11);
    assert_eq!(numbers(&back), [(1002, 1), (1001, 0), (1003, 2)]);

    let new = step(&catalog, Some(&lost), vec![gpu(4, NVIDIA), gpu(2, NVIDIA), gpu(3, NVIDIA)], 12);
    assert_eq!(numbers(&new), [(1004, 3), (1002, 1), (1003, 2), (1001, 0)]);
    let dropped =
        step(&catalog, Some(&new), vec![gpu(4, NVIDIA), gpu(2, NVIDIA), gpu(3, NVIDIA)], 610);
    let seen = vec![gpu(4, NVIDIA), gpu(5, NVIDIA), gpu(3, NVIDIA)];
    let reused = step(&catalog, Some(&dropped), seen, 611);
    assert_eq!(numbers(&reused), [(1004, 3), (1005, 0), (1003, 2), (1002, 1)]);
}

#[test]
fn a_device_has_one_number_whatever_the_configuration_calls_its_resource() {
    let seen = || host(vec![gpu(1, NVIDIA), gpu(2, AMD)]);
    let set = DeviceSet::next(None, catalog([wddm(1)]).offer(&seen()), at(0));
    let rules = with_rules(1, &[("a/amd", Vendor::Amd), ("a/nvidia", Vendor::Nvidia)]);
    let set = set.reconfigured(rules.offer(&seen()));
    assert_eq!(numbers(&set), [(1002, 1), (1001, 0)]);
}

/// Each resource with its devices and the number of its replicas.
fn resources(set: &DeviceSet) -> Vec<(&str, Vec<i64>, usize)> {
    let luids = |r: &ResourceDevices| r.entries().iter().map(|e| e.device.luid.0).collect();
    let resources = set.resources.iter();
    resources.map(|r| (r.spec.name.as_str(), luids(r), r.replicas().count())).collect()
}

/// A policy with a rule for each name, which claims the devices of a vendor.
fn with_rules(replicas: u32, rules: &[(&str, Vendor)]) -> Catalog {
    let rule = |(name, vendor): &(&str, Vendor)| ResourceRule {
        name: name.parse().unwrap(),
        matches: DeviceMatch { vendor: Some(*vendor), ..DeviceMatch::default() },
        replicas: None,
        allocation: None,
        visibility: None,
    };
    let mut policy = wddm(replicas);
    policy.rules = rules.iter().map(rule).collect();
    catalog([policy])
}

#[test]
fn a_new_policy_takes_devices_away_at_once_and_keeps_the_grace_time_of_removed_ones() {
    let own = "directx.microsoft.com/display";
    let seen = || vec![gpu(1, NVIDIA), gpu(2, AMD)];
    let plain = catalog([wddm(1)]);
    let all = vec![gpu(1, NVIDIA), gpu(2, AMD), gpu(3, NVIDIA)];
    let set = step(&plain, Some(&step(&plain, None, all, 0)), seen(), 10);
    assert_eq!(resources(&set), [(own, vec![1001, 1002, 1003], 3)]);

    let rules = with_rules(2, &[("a/nvidia", Vendor::Nvidia), ("a/amd", Vendor::Amd)]);
    let set = set.reconfigured(rules.offer(&host(seen())));
    let nvidia = ("a/nvidia", vec![1001], 2);
    let amd = ("a/amd", vec![1002], 2);
    assert_eq!(resources(&set), [(own, vec![1003], 2), nvidia.clone(), amd.clone()]);
    assert_eq!(set.deadline(), Some(at(70)));
    let set = step(&rules, Some(&set), seen(), 609);
    assert_eq!(resources(&set)[0], (own, vec![1003], 2));
    let set = step(&rules, Some(&set), seen(), 610);
    assert_eq!(resources(&set), [(own, vec![], 0), nvidia.clone(), amd.clone()]);

    let set = set.reconfigured(plain.offer(&host(seen())));
    assert_eq!(resources(&set), [(own, vec![1001, 1002], 2)]);
    assert_eq!(set.deadline(), None);
}

/// The device was removed because the earlier policy does not advertise it.
#[test]
fn a_device_that_a_new_policy_advertises_again_is_listed_once() {
    let integrated = || vec![Adapter { integrated: true, ..gpu(1, NVIDIA) }];
    let plain = catalog([wddm(1)]);
    let set = step(&plain, Some(&step(&plain, None, vec![gpu(1, NVIDIA)], 0)), integrated(), 1);
    assert_eq!(health(&set), [(1001, Health::Unhealthy(UnhealthyReason::NotAdvertised))]);
    let included = catalog([ModelPolicy { include_integrated: true, ..wddm(1) }]);
    let set = set.reconfigured(included.offer(&host(integrated())));
    assert_eq!(health(&set), [(1001, Health::Healthy)]);
}

#[test]
fn a_resource_is_followed_by_its_name() {
    let seen = || vec![gpu(1, NVIDIA), gpu(2, AMD)];
    let rules = with_rules(1, &[("a/nvidia", Vendor::Nvidia), ("a/amd", Vendor::Amd)]);
    let set = step(&rules, None, seen(), 0);
    let other_order = with_rules(1, &[("a/amd", Vendor::Amd), ("a/nvidia", Vendor::Nvidia)]);
    let set = set.reconfigured(other_order.offer(&host(seen())));
    let set = step(&other_order, Some(&set), vec![gpu(2, AMD)], 2);
    assert_eq!(resources(&set)[1..], [("a/amd", vec![1002], 1), ("a/nvidia", vec![1001], 1)]);
    let name = "a/nvidia".parse().unwrap();
    assert_eq!(set.resource(&name).unwrap().entries()[0].device.luid, Luid(1001));
}

#[test]
fn every_device_has_as_many_replicas_as_configured() {
    let set = step(&catalog([wddm(3)]), None, vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 0);
    let ids: Vec<String> =
        set.resources[0].replicas().map(|replica| replica.id.to_string()).collect();
    let expected = |n: u32| (0..3).map(move |r| format!(r"PCI\VEN_10DE\{n}&0\{r}"));
    assert_eq!(ids, expected(1).chain(expected(2)).collect::<Vec<_>>());
}

#[test]
fn a_driver_is_another_one_if_its_version_or_folder_differs() {
    let in_folder = |name| Adapter { driver_store: Some(store(name)), ..gpu(1, NVIDIA) };
    let version = |n| Adapter { driver_version: Some(DriverVersion(n)), ..in_folder("a") };
    let unknown = Adapter { driver_version: None, driver_store: None, ..gpu(1, NVIDIA) };
    let mut other_case = in_folder("a");
    other_case.driver_store.as_mut().unwrap().path.make_ascii_uppercase();
    for (before, now, expected) in [
        (version(1), version(2), true),
        (in_folder("a"), in_folder("b"), true),
        (in_folder("a"), in_folder("a"), false),
        (in_folder("a"), other_case, false),
        (in_folder("a"), unknown.clone(), false),
        (unknown, in_folder("a"), false),
    ] {
        let device = |adapter| {
            let set = step(&catalog([wddm(1)]), None, vec![adapter], 0);
            set.resources[0].entries()[0].device.clone()
        };
        assert_eq!(device(now).has_other_driver(&device(before)), expected);
    }
}
