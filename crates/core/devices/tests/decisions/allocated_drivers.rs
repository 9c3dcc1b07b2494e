//! Containers that use an earlier driver of their device.

use devices::{
    Adapter, AllocatedDrivers, DeviceSet, DriverVersion, Moment, OutdatedReplica, ResourceName,
    is_driver_replaced,
};

use crate::hosts::{NVIDIA, catalog, gpu, host, store, wddm};

const FIRST: &str = r"PCI\VEN_10DE\1&0\0";
const SECOND_REPLICA: &str = r"PCI\VEN_10DE\1&0\1";

fn display() -> ResourceName {
    "directx.microsoft.com/display".parse().unwrap()
}

fn set(adapters: Vec<Adapter>) -> DeviceSet {
    DeviceSet::next(None, catalog([wddm(2)]).offer(&host(adapters)), Moment::default())
}

fn with_folder(name: &str) -> Adapter {
    Adapter { driver_store: Some(store(name)), ..gpu(1, NVIDIA) }
}

#[test]
fn a_replica_is_outdated_from_the_replacement_of_the_driver_until_its_next_allocation() {
    let (old, new) = (set(vec![with_folder("a")]), set(vec![with_folder("b")]));
    let mut drivers = AllocatedDrivers::default();
    let outdated = |drivers: &AllocatedDrivers, set: &DeviceSet| {
        [FIRST, SECOND_REPLICA]
            .map(|replica| drivers.outdated_replica(set, &display(), replica).is_some())
    };
    drivers.record(&old.resources[0], [FIRST, SECOND_REPLICA, "no replica", r"PCI\GONE\0"]);
    assert_eq!(outdated(&drivers, &old), [false, false]);
    assert_eq!(outdated(&drivers, &new), [true, true]);
    drivers.record(&new.resources[0], [FIRST]);
    assert_eq!(outdated(&drivers, &new), [false, true]);
    assert_eq!(outdated(&drivers, &old), [true, false], "the driver was rolled back");
    assert_eq!(outdated(&drivers, &set(vec![])), [false, false], "the device is gone");
    let expected = OutdatedReplica {
        resource: display(),
        replica: SECOND_REPLICA.to_owned(),
        device: r"PCI\VEN_10DE\1&0".to_owned(),
        before: "a".to_owned(),
        now: "b".to_owned(),
    };
    assert_eq!(drivers.outdated(&new), [expected]);
    drivers.forget(&display(), SECOND_REPLICA);
    assert_eq!(drivers.outdated(&new), []);
    assert_eq!(outdated(&AllocatedDrivers::default(), &new), [false, false]);
}

#[test]
fn devices_that_are_no_longer_listed_are_forgotten() {
    let old = set(vec![with_folder("a")]);
    let mut drivers = AllocatedDrivers::default();
    drivers.record(&old.resources[0], [FIRST]);
    drivers.follow(&old);
    assert!(!drivers.outdated(&set(vec![with_folder("b")])).is_empty());
    drivers.follow(&set(vec![gpu(2, NVIDIA)]));
    assert!(drivers.outdated(&set(vec![with_folder("b")])).is_empty());
}

#[test]
fn a_driver_is_replaced_if_its_version_or_folder_differs() {
    let version = |n| Adapter { driver_version: Some(DriverVersion(n)), ..with_folder("a") };
    let unknown = Adapter { driver_version: None, driver_store: None, ..with_folder("a") };
    let mut other_case = with_folder("a");
    other_case.driver_store.as_mut().unwrap().path.make_ascii_uppercase();
    let cases = [
        (version(1), version(2), true),
        (with_folder("a"), with_folder("b"), true),
        (with_folder("a"), with_folder("a"), false),
        (with_folder("a"), other_case, false),
        (with_folder("a"), unknown.clone(), false),
        (unknown, with_folder("a"), false),
    ];
    for (before, now, expected) in cases {
        let device = |adapter| set(vec![adapter]).resources[0].entries()[0].device.clone();
        assert_eq!(is_driver_replaced(&device(before), &device(now)), expected);
    }
}
