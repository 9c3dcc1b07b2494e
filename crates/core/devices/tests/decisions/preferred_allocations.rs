//! Preferred allocations.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use devices::{AllocationPolicy, ModelPolicy, MultiDevice, ResourceDevices, preferred_allocation};
use host::HostSnapshot;
use proptest::prelude::*;

use crate::hosts::{AMD, NVIDIA, gpu, host, resource, wddm};

fn replicas(resource: &ResourceDevices) -> Vec<String> {
    resource.replicas().map(|replica| replica.id.to_string()).collect()
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
        let free = without(&replicas(&devices), &["1.0"]);
        assert_eq!(short(&preferred_allocation(&devices, &free, &[], 1).unwrap()), [expected]);
    }
}

#[test]
fn a_second_replica_is_used_only_when_no_other_device_is_free() {
    for policy in [wddm(4), packed(4)] {
        let devices = resource(policy, &two_gpus());
        let free = without(&replicas(&devices), &["2.0", "2.1"]);
        let mut two = short(&preferred_allocation(&devices, &free, &[], 2).unwrap());
        two.sort();
        assert_eq!(two, ["1.0", "2.2"]);
        assert_eq!(preferred_allocation(&devices, &free, &[], 3).unwrap().len(), 3);
    }
}

/// Such a container gets one device. With replicas of both, every container would get the first.
#[test]
fn multi_device_first_prefers_replicas_of_one_device() {
    let mut policy = wddm(4);
    Arc::make_mut(&mut policy.container).multi_device = MultiDevice::First;
    let devices = resource(policy, &two_gpus());
    let all = replicas(&devices);
    let first = preferred_allocation(&devices, &all, &[], 2).unwrap();
    assert_eq!(short(&first), ["1.0", "1.1"]);
    let free = without(&all, &["1.0", "1.1"]);
    assert_eq!(short(&preferred_allocation(&devices, &free, &[], 2).unwrap()), ["2.0", "2.1"]);
    assert_eq!(preferred_allocation(&devices, &all, &[], 6).unwrap().len(), 6);
}

#[test]
fn devices_with_the_same_driver_are_preferred() {
    let mixed = host(vec![gpu(1, NVIDIA), gpu(2, AMD), gpu(3, AMD)]);
    let devices = resource(wddm(1), &mixed);
    let all = replicas(&devices);
    assert_eq!(short(&preferred_allocation(&devices, &all, &[], 2).unwrap()), ["2.0", "3.0"]);
    // The first replica is fixed: its driver decides. If that driver has no other device, any
    // device is used.
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
    let published = ModelPolicy { publish_numa: true, ..wddm(1) };
    for (policy, expected) in [(wddm(1), ["1.0", "2.0"]), (published, ["1.0", "3.0"])] {
        let devices = resource(policy, &mixed);
        assert_eq!(
            short(&preferred_allocation(&devices, &replicas(&devices), &[], 2).unwrap()),
            expected
        );
    }
}

#[test]
fn unknown_ids_are_left_out_and_refused_only_where_they_must_be_included() {
    let devices = resource(wddm(1), &two_gpus());
    let all = replicas(&devices);
    let gone = r"PCI\OLD\9&0\0".to_owned();
    let beyond = all[0].replace("\\0", "\\7");
    for unknown in [&gone, &beyond, &String::new(), &"no replica".to_owned()] {
        let available = [vec![unknown.clone()], all.clone()].concat();
        assert_eq!(preferred_allocation(&devices, &available, &[], 2), Ok(all.clone()));
        let included = std::slice::from_ref(unknown);
        assert!(preferred_allocation(&devices, &all, included, 1).is_err(), "{unknown}");
        assert_eq!(preferred_allocation(&devices, included, &[], 1), Ok(Vec::new()));
    }
    let error = preferred_allocation(&devices, &all, std::slice::from_ref(&gone), 1).unwrap_err();
    assert!(error.to_string().starts_with(&format!("unknown device ID `{gone}`")));
}

#[test]
fn impossible_requests_get_what_there_is() {
    let devices = resource(wddm(1), &two_gpus());
    let all = replicas(&devices);
    assert_eq!(preferred_allocation(&devices, &all, &[], 3), Ok(all.clone()));
    assert_eq!(preferred_allocation(&devices, &all, &all, 1), Ok(all.clone()));
    let twice = [all.clone(), all.clone()].concat();
    assert_eq!(preferred_allocation(&devices, &twice, &[], 4), Ok(all));
}

fn any_resource() -> impl Strategy<Value = Arc<ResourceDevices>> {
    let vendor = prop::sample::select(vec![NVIDIA, AMD, 0x8086]);
    let gpus = prop::collection::vec((vendor, 0..3u32), 1..7);
    (gpus, 1..5u32, any::<bool>(), any::<bool>()).prop_map(|(gpus, replicas, pack, publish)| {
        let adapter = |(n, (vendor, node)): (usize, (u32, u32))| {
            let mut adapter = gpu(i64::try_from(n).unwrap(), vendor);
            adapter.pnp.as_mut().unwrap().numa_node = Some(node);
            adapter
        };
        let adapters = gpus.into_iter().enumerate().map(adapter).collect();
        let mut policy = if pack { packed(replicas) } else { wddm(replicas) };
        policy.publish_numa = publish;
        resource(policy, &host(adapters))
    })
}

/// The preferences one replica after the other: slow, and easy to compare with their
/// description.
fn one_by_one(
    devices: &ResourceDevices,
    available: &[String],
    must: &[String],
    size: usize,
) -> Vec<String> {
    let entry = |id: &String| {
        let device = id.rsplit_once('\\').unwrap().0;
        devices.entries().iter().position(|e| e.device.id.as_str() == device).unwrap()
    };
    let driver = |n: usize| devices.entries()[n].device.driver_store.as_ref().ok().map(|s| &s.path);
    let affinity = |n: usize| (driver(n), devices.entries()[n].published_numa_node());
    let replicas = devices.spec.sharing.replicas.get() as usize;
    let mut free: Vec<&String> = available.iter().filter(|id| !must.contains(id)).collect();
    free.sort_by_key(|id| id.rsplit_once('\\').unwrap().1.parse::<u32>().unwrap());
    let of_device = |ids: &[&String], n| ids.iter().filter(|id| entry(id) == n).count();
    let load: Vec<usize> = (0..devices.entries().len())
        .map(|n| match devices.spec.sharing.allocation {
            AllocationPolicy::Distributed => replicas - of_device(&free, n),
            AllocationPolicy::Packed => of_device(&free, n),
        })
        .collect();
    let mut chosen: Vec<&String> = must.iter().collect();
    while chosen.len() < size {
        let missing = size - chosen.len();
        let with_free: BTreeSet<usize> = free.iter().map(|id| entry(id)).collect();
        let best = with_free.iter().min_by_key(|&&n| {
            let matching = |fits: &dyn Fn(usize) -> bool| {
                if chosen.is_empty() {
                    with_free.iter().filter(|&&n| fits(n)).count().min(missing)
                } else {
                    chosen.iter().filter(|id| fits(entry(id))).count()
                }
            };
            let same_driver = matching(&|other| driver(other) == driver(n));
            let same_affinity = matching(&|other| affinity(other) == affinity(n));
            (of_device(&chosen, n), Reverse(same_driver), Reverse(same_affinity), load[n], n)
        });
        let place = free.iter().position(|id| Some(&entry(id)) == best).unwrap();
        chosen.push(free.remove(place));
    }
    chosen.into_iter().cloned().collect()
}

proptest! {
    /// The result is a subset of the available replicas, has the requested size, contains the
    /// required replicas, is stable, has no second replica while another device is free, and is
    /// what choosing one replica after the other gives.
    #[test]
    fn preferred_allocations_meet_their_contract(
        devices in any_resource(),
        keep in prop::collection::vec(any::<bool>(), 28),
        size in 0..20usize,
        must in prop::collection::vec(0..28usize, 0..6),
    ) {
        let available: Vec<String> =
            replicas(&devices).into_iter().zip(&keep).filter(|(_, k)| **k).map(|(id, _)| id).collect();
        let must: BTreeSet<&String> = must.iter().filter_map(|n| available.get(*n)).collect();
        let must: Vec<String> = must.into_iter().cloned().collect();
        let must = must.as_slice();
        let size = size.clamp(must.len(), available.len());
        let chosen = preferred_allocation(&devices, &available, must, size).unwrap();
        prop_assert_eq!(&chosen, &one_by_one(&devices, &available, must, size));
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
