//! Preferred allocations.

use std::collections::BTreeSet;
use std::sync::Arc;

use devices::{
    AllocationPolicy, HostSnapshot, ModelPolicy, NumaTopology, PreferredAllocationError,
    ResourceDevices, preferred_allocation,
};
use proptest::prelude::*;

use crate::hosts::{AMD, NVIDIA, gpu, host, resource, wddm};

fn slots(resource: &ResourceDevices) -> Vec<String> {
    resource.slots().map(|slot| slot.id.to_string()).collect()
}

/// `vendor device replica` for short.
fn short(ids: &[String]) -> Vec<String> {
    let part = |id: &String| {
        let parts: Vec<&str> = id.split('\\').collect();
        format!("{}.{}", parts[2].trim_end_matches("&0"), parts[3])
    };
    ids.iter().map(part).collect()
}

fn without(all: &[String], taken: &[&str]) -> Vec<String> {
    let wanted = |id: &&String| !taken.contains(&short(&[(*id).clone()])[0].as_str());
    all.iter().filter(wanted).cloned().collect()
}

fn packed(replicas: u32) -> ModelPolicy {
    let mut policy = wddm(replicas);
    policy.sharing.allocation = AllocationPolicy::Packed;
    policy
}

fn two_gpus() -> HostSnapshot {
    host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)])
}

#[test]
fn distributed_uses_the_least_used_device_and_packed_the_most_used() {
    for (policy, expected) in [(wddm(4), "2.0"), (packed(4), "1.1")] {
        let devices = resource(policy, &two_gpus());
        let free = without(&slots(&devices), &["1.0"]);
        assert_eq!(short(&preferred_allocation(&devices, &free, &[], 1).unwrap()), [expected]);
    }
}

#[test]
fn a_second_replica_is_used_only_when_no_other_device_is_free() {
    for policy in [wddm(4), packed(4)] {
        let devices = resource(policy, &two_gpus());
        let free = without(&slots(&devices), &["2.0", "2.1"]);
        let mut two = short(&preferred_allocation(&devices, &free, &[], 2).unwrap());
        two.sort();
        assert_eq!(two, ["1.0", "2.2"]);
        assert_eq!(preferred_allocation(&devices, &free, &[], 3).unwrap().len(), 3);
    }
}

#[test]
fn devices_with_the_same_driver_are_preferred() {
    let mixed = host(vec![gpu(1, NVIDIA), gpu(2, AMD), gpu(3, AMD)]);
    let devices = resource(wddm(1), &mixed);
    let all = slots(&devices);
    assert_eq!(short(&preferred_allocation(&devices, &all, &[], 2).unwrap()), ["2.0", "3.0"]);
    // The first slot is fixed: its driver decides. If that driver has no other device, any device is used.
    let must = vec![all[0].clone()];
    assert_eq!(short(&preferred_allocation(&devices, &all, &must, 2).unwrap()), ["1.0", "2.0"]);
    assert_eq!(
        short(&preferred_allocation(&devices, &all, &[all[2].clone()], 2).unwrap()),
        ["3.0", "2.0"]
    );
}

#[test]
fn devices_on_one_numa_node_are_preferred_if_nodes_are_published() {
    let mut far = gpu(2, NVIDIA);
    far.pnp.as_mut().unwrap().numa_node = Some(1);
    let mixed = host(vec![gpu(1, NVIDIA), far, gpu(3, NVIDIA)]);
    let published = ModelPolicy { numa: NumaTopology::Publish, ..wddm(1) };
    for (policy, expected) in [(wddm(1), ["1.0", "2.0"]), (published, ["1.0", "3.0"])] {
        let devices = resource(policy, &mixed);
        assert_eq!(
            short(&preferred_allocation(&devices, &slots(&devices), &[], 2).unwrap()),
            expected
        );
    }
}

#[test]
fn slots_of_unknown_devices_come_last() {
    let devices = resource(wddm(1), &host(vec![gpu(1, NVIDIA)]));
    let mut all = vec![r"PCI\OLD\9&0\0".to_owned()];
    all.extend(slots(&devices));
    assert_eq!(short(&preferred_allocation(&devices, &all, &[], 1).unwrap()), ["1.0"]);
    assert_eq!(short(&preferred_allocation(&devices, &all, &[], 2).unwrap()), ["1.0", "9.0"]);
}

#[test]
fn impossible_requests_are_errors() {
    let devices = resource(wddm(1), &two_gpus());
    let all = slots(&devices);
    let few = PreferredAllocationError::TooFew { requested: 3, available: 2 };
    assert_eq!(preferred_allocation(&devices, &all, &[], 3), Err(few));
    let many = PreferredAllocationError::TooMany { must_include: 2, requested: 1 };
    assert_eq!(preferred_allocation(&devices, &all, &all, 1), Err(many));
}

fn any_resource() -> impl Strategy<Value = Arc<ResourceDevices>> {
    let vendors = prop::collection::vec(prop::sample::select(vec![NVIDIA, AMD]), 1..5);
    (vendors, 1..5u32, any::<bool>()).prop_map(|(vendors, replicas, pack)| {
        let gpus = vendors.into_iter().enumerate();
        let adapters = gpus.map(|(n, vendor)| gpu(i64::try_from(n).unwrap(), vendor)).collect();
        resource(if pack { packed(replicas) } else { wddm(replicas) }, &host(adapters))
    })
}

proptest! {
    /// The result is a subset of the available slots, has the requested size, contains the
    /// required slots, is stable, and has no second replica while another device is free.
    #[test]
    fn preferred_allocations_meet_their_contract(
        devices in any_resource(),
        keep in prop::collection::vec(any::<bool>(), 20),
        size in 0..8usize,
        must in 0..3usize,
    ) {
        let available: Vec<String> =
            slots(&devices).into_iter().zip(&keep).filter(|(_, k)| **k).map(|(id, _)| id).collect();
        let must = &available[..must.min(available.len())];
        let Ok(chosen) = preferred_allocation(&devices, &available, must, size) else {
            prop_assert!(available.len() < size || must.len() > size);
            return Ok(());
        };
        prop_assert_eq!(chosen.len(), size);
        let set: BTreeSet<&String> = chosen.iter().collect();
        prop_assert_eq!(set.len(), size);
        prop_assert!(chosen.iter().all(|id| available.contains(id)));
        prop_assert!(must.iter().all(|id| chosen.contains(id)));
        prop_assert_eq!(preferred_allocation(&devices, &available, must, size), Ok(chosen.clone()));
        if must.is_empty() {
            let device = |id: &String| id.rsplit_once('\\').unwrap().0.to_owned();
            let used: BTreeSet<String> = chosen.iter().map(device).collect();
            let all: BTreeSet<String> = available.iter().map(device).collect();
            prop_assert_eq!(used.len(), size.min(all.len()));
        }
    }
}
