//! Successive device sets: health, devices that are removed and return, slots.

use std::time::Duration;

use devices::{Adapter, Catalog, DeviceSet, Health, Luid, Moment, UnhealthyReason};

use crate::hosts::{NVIDIA, catalog, gpu, host, wddm};

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
    assert_eq!(one.deadline(), Some(at(70)));
    // Later refreshes do not extend the grace time.
    let still = step(&catalog, Some(&one), vec![gpu(2, NVIDIA)], 69);
    assert_eq!(health(&still), [(1002, Health::Healthy), removed]);
    assert_eq!(still.deadline(), Some(at(70)));
    let dropped = step(&catalog, Some(&still), vec![gpu(2, NVIDIA)], 70);
    assert_eq!(health(&dropped), [(1002, Health::Healthy)]);
    assert_eq!(dropped.deadline(), None);
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

#[test]
fn without_a_grace_time_a_removed_device_is_dropped_immediately() {
    let mut policy = wddm(1);
    policy.removal_grace = Duration::ZERO;
    let catalog = catalog([policy]);
    let set = step(&catalog, None, vec![gpu(1, NVIDIA)], 5);
    assert_eq!(health(&step(&catalog, Some(&set), vec![], 5)), []);
}

#[test]
fn every_device_has_one_slot_per_replica() {
    let set = step(&catalog([wddm(3)]), None, vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 0);
    let ids: Vec<String> = set.resources[0].slots().map(|slot| slot.id.to_string()).collect();
    let expected = |n: u32| (0..3).map(move |r| format!(r"PCI\VEN_10DE\{n}&0\{r}"));
    assert_eq!(ids, expected(1).chain(expected(2)).collect::<Vec<_>>());
}
