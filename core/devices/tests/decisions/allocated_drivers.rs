//! Containers that use an earlier driver of their device.

use devices::{
    Adapter, AllocatedDrivers, DeviceSet, DriverVersion, EarlierAllocation, Moment, OutdatedSlot,
    ResourceName, is_driver_replaced,
};

use crate::hosts::{AMD, NVIDIA, catalog, gpu, host, store, wddm, without_driver_files};

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
fn a_slot_is_outdated_from_the_replacement_of_the_driver_until_its_next_allocation() {
    let (old, new) = (set(vec![with_folder("a")]), set(vec![with_folder("b")]));
    let mut drivers = AllocatedDrivers::default();
    let outdated = |drivers: &AllocatedDrivers, set: &DeviceSet| {
        [FIRST, SECOND_REPLICA].map(|slot| drivers.outdated_slot(set, &display(), slot).is_some())
    };
    drivers.record(&old.resources[0], [FIRST, SECOND_REPLICA, "no slot", r"PCI\GONE\0"]);
    assert_eq!(outdated(&drivers, &old), [false, false]);
    assert_eq!(outdated(&drivers, &new), [true, true]);
    drivers.record(&new.resources[0], [FIRST]);
    assert_eq!(outdated(&drivers, &new), [false, true]);
    assert_eq!(outdated(&drivers, &old), [true, false], "the driver was rolled back");
    assert_eq!(outdated(&drivers, &set(vec![])), [false, false], "the device is gone");
    let expected = OutdatedSlot {
        resource: display(),
        slot: SECOND_REPLICA.to_owned(),
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

/// What the kubelet records of an allocation of these slots.
fn earlier(set: &DeviceSet, slots: &[&str]) -> EarlierAllocation {
    let resource = &set.resources[0];
    let plan = devices::plan(resource, slots.iter().copied(), &set.host, &|_| true).unwrap();
    EarlierAllocation {
        resource: resource.spec.name.to_string(),
        slots: slots.iter().map(|slot| (*slot).to_owned()).collect(),
        mounts: plan.mounts.mounted().map(|file| file.host_path.clone()).collect(),
        envs: plan.envs.into_iter().collect(),
    }
}

/// The drivers of the slots that are outdated in `now`, if `allocations` came before the start.
fn changes(allocations: &[EarlierAllocation], now: &DeviceSet) -> Vec<(String, String)> {
    let mut drivers = AllocatedDrivers::default();
    drivers.record_earlier(allocations.to_vec(), now);
    let mut outdated = drivers.outdated(now);
    outdated.sort();
    outdated.into_iter().map(|slot| (slot.before, slot.now)).collect()
}

#[test]
fn the_driver_of_an_allocation_before_the_start_is_known_by_its_mounts_or_its_variables() {
    let (old, new) = (set(vec![with_folder("a")]), set(vec![with_folder("b")]));
    let allocated = earlier(&old, &[FIRST]);
    assert!(allocated.mounts[0].ends_with(r"\a\runtime64.dll"), "{allocated:?}");
    assert_eq!(changes(std::slice::from_ref(&allocated), &old), []);
    let folders = [("a".to_owned(), "b".to_owned())];
    assert_eq!(changes(std::slice::from_ref(&allocated), &new), folders);
    let without_hints = EarlierAllocation { envs: vec![], ..allocated };
    assert_eq!(changes(std::slice::from_ref(&without_hints), &new), folders);

    let version =
        |n| set(vec![Adapter { driver_version: Some(DriverVersion(n)), ..with_folder("a") }]);
    let without_mounts = EarlierAllocation { mounts: vec![], ..earlier(&version(1), &[FIRST]) };
    let versions = [("0.0.0.1".to_owned(), "0.0.0.2".to_owned())];
    assert_eq!(changes(std::slice::from_ref(&without_mounts), &version(2)), versions);
    assert_eq!(changes(&[without_mounts], &version(1)), []);
    let nothing =
        EarlierAllocation { envs: vec![], mounts: vec![], ..earlier(&version(1), &[FIRST]) };
    assert_eq!(changes(&[nothing], &version(2)), [], "nothing says which driver it was");
}

#[test]
fn the_files_of_a_container_with_several_devices_are_those_of_all_their_drivers() {
    let amd = |folder| Adapter { driver_store: Some(store(folder)), ..gpu(2, AMD) };
    let second = r"PCI\VEN_1002\2&0\0";
    let before = set(vec![with_folder("a"), amd("x")]);
    // Both drivers have a file with the same name, so only the first one's is mounted.
    let both = earlier(&before, &[FIRST, second]);
    assert!(!both.mounts.iter().any(|path| path.contains(r"\x\")), "{both:?}");
    assert_eq!(changes(std::slice::from_ref(&both), &before), []);
    let now = set(vec![with_folder("b"), amd("x")]);
    assert!(changes(&[both], &now).contains(&("a".to_owned(), "b".to_owned())));
}

#[test]
fn an_earlier_allocation_waits_for_its_device_and_never_replaces_a_later_one() {
    let (old, new) = (set(vec![with_folder("a")]), set(vec![with_folder("b")]));
    let allocated = || vec![earlier(&old, &[FIRST, SECOND_REPLICA])];
    for unsettled in [set(vec![]), set(vec![without_driver_files(1)])] {
        let mut drivers = AllocatedDrivers::default();
        drivers.record_earlier(allocated(), &unsettled);
        assert_eq!(drivers.outdated(&unsettled), []);
        drivers.follow(&new);
        assert_eq!(drivers.outdated(&new).len(), 2);
    }
    let mut drivers = AllocatedDrivers::default();
    drivers.record(&new.resources[0], [FIRST]);
    drivers.record_earlier(allocated(), &new);
    let slots: Vec<String> = drivers.outdated(&new).into_iter().map(|slot| slot.slot).collect();
    assert_eq!(slots, [SECOND_REPLICA]);
    let odd = ["", "no slot", r"PCI\VEN_10DE\1&0\7"].map(str::to_owned).to_vec();
    let odd = EarlierAllocation {
        slots: odd,
        mounts: vec![String::new(), r"C:\é".into()],
        ..earlier(&old, &[FIRST])
    };
    assert_eq!(changes(&[odd], &new), []);
}
