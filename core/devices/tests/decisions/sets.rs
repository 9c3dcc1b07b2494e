//! How sets follow one another: health, devices that go away and come back, slots.

use std::time::Duration;

use devices::{Adapter, Ailment, Catalog, DeviceSet, Health, Luid, Moment};

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

/// Devices used to be Healthy whatever happened.
#[test]
fn a_problem_code_makes_a_device_unhealthy_and_its_end_healthy() {
    let catalog = catalog([wddm(1)]);
    let mut sick = gpu(1, NVIDIA);
    sick.pnp.as_mut().unwrap().problem_code = 43;
    let set = step(&catalog, None, vec![sick, gpu(2, NVIDIA)], 0);
    let ailment = Ailment::Problem(43);
    assert_eq!(health(&set), [(1001, Health::Unhealthy(ailment)), (1002, Health::Healthy)]);
    assert_eq!(ailment.to_string(), "Windows reports problem code 43");
    assert_eq!(set.deadline(), None);
    let set = step(&catalog, Some(&set), vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 1);
    assert_eq!(health(&set), [(1001, Health::Healthy), (1002, Health::Healthy)]);
}

#[test]
fn a_device_that_goes_away_is_unhealthy_for_the_grace_time_and_then_dropped() {
    let catalog = catalog([wddm(1)]);
    let both = step(&catalog, None, vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 0);
    let one = step(&catalog, Some(&both), vec![gpu(2, NVIDIA)], 10);
    let gone = (1001, Health::Unhealthy(Ailment::Gone));
    assert_eq!(health(&one), [(1002, Health::Healthy), gone]);
    assert_eq!(one.deadline(), Some(at(70)));
    // Later refreshes do not prolong the grace time.
    let still = step(&catalog, Some(&one), vec![gpu(2, NVIDIA)], 69);
    assert_eq!(health(&still), [(1002, Health::Healthy), gone]);
    assert_eq!(still.deadline(), Some(at(70)));
    let dropped = step(&catalog, Some(&still), vec![gpu(2, NVIDIA)], 70);
    assert_eq!(health(&dropped), [(1002, Health::Healthy)]);
    assert_eq!(dropped.deadline(), None);
}

#[test]
fn a_device_that_comes_back_is_healthy_again_with_another_luid() {
    let catalog = catalog([wddm(1)]);
    let set = step(&catalog, None, vec![gpu(1, NVIDIA)], 0);
    let set = step(&catalog, Some(&set), vec![], 1);
    assert_eq!(health(&set), [(1001, Health::Unhealthy(Ailment::Gone))]);
    let mut back = gpu(1, NVIDIA);
    back.luid = Luid(5);
    let set = step(&catalog, Some(&set), vec![back], 2);
    assert_eq!(health(&set), [(5, Health::Healthy)]);
    assert_eq!(set.deadline(), None);
}

#[test]
fn no_grace_drops_at_once() {
    let mut policy = wddm(1);
    policy.removal_grace = Duration::ZERO;
    let catalog = catalog([policy]);
    let set = step(&catalog, None, vec![gpu(1, NVIDIA)], 5);
    assert_eq!(health(&step(&catalog, Some(&set), vec![], 5)), []);
}

#[test]
fn slots_are_devices_times_replicas() {
    let set = step(&catalog([wddm(3)]), None, vec![gpu(1, NVIDIA), gpu(2, NVIDIA)], 0);
    let ids: Vec<String> = set.resources[0].slots().map(|slot| slot.id.to_string()).collect();
    let expected = |n: u32| (0..3).map(move |r| format!(r"PCI\VEN_10DE\{n}&0\{r}"));
    assert_eq!(ids, expected(1).chain(expected(2)).collect::<Vec<_>>());
}
