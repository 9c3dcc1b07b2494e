//! Preferred allocation: which of the available replicas a container should get.
//!
//! The criteria, in order of weight: no second replica of a device while another device
//! is free (under `multiDevice: first`, a second replica of the same device), one driver per container, one NUMA node per container if nodes are
//! published, then the policy (distributed or packed), then the order of the devices
//! and of the replicas. The result is a subset of the available replicas, has the
//! requested size, and depends only on the arguments.
//!
//! Replicas are chosen one after the other, and each choice compares the devices. Anyone who may
//! create a pod decides how many are requested, so the cost is linear in that number and in the
//! number of devices.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::set::device_set::{ReplicaError, ResourceDevices};
use crate::{AllocationPolicy, MultiDevice, Sharing};

/// Picks `size` of the `available` replicas, including those in `must_include`, which may be
/// listed as available too. If there are fewer, it picks all. An available ID that belongs to no
/// replica of the resource is left out: the kubelet may have an older list, and it fails the pod
/// if it gets no preference.
///
/// # Errors
/// An ID in `must_include` belongs to no replica of the resource.
pub fn preferred_allocation(
    resource: &ResourceDevices,
    available: &[String],
    must_include: &[String],
    size: usize,
) -> Result<Vec<String>, ReplicaError> {
    let mut seen = HashSet::new();
    let mut devices = candidates(resource);
    let mut counts = Counts::new(devices.len());
    for id in must_include {
        let replica = resource.locate(id)?;
        seen.insert((replica.device_index, replica.number));
        counts.choose(&mut devices[replica.device_index]);
    }
    for id in available {
        let Ok(replica) = resource.locate(id) else { continue };
        if seen.insert((replica.device_index, replica.number)) {
            devices[replica.device_index].free.push((replica.number, id));
        }
    }
    for device in &mut devices {
        device.free.sort_unstable_by_key(|replica| Reverse(*replica));
    }
    let mut chosen = must_include.to_vec();
    if chosen.is_empty() {
        counts = Counts::before_the_first(&devices, size);
    }
    let one_device = gets_one_device(resource);
    let sharing = resource.spec.sharing;
    let loads: Vec<usize> = devices.iter().map(|device| device.load(sharing)).collect();
    while chosen.len() < size {
        let free = devices.iter().enumerate().filter(|(_, device)| !device.free.is_empty());
        let best = free.min_by_key(|(n, device)| (counts.rank(device, one_device), loads[*n], *n));
        let Some(device) = best.map(|(n, _)| n).map(|n| &mut devices[n]) else { break };
        if chosen.is_empty() {
            counts = Counts::new(loads.len());
        }
        chosen.extend(device.free.pop().map(|(_, id)| id.to_owned()));
        counts.choose(device);
    }
    Ok(chosen)
}

/// Whether a container with several devices gets only one of them, so that replicas of the others
/// would be wasted.
fn gets_one_device(resource: &ResourceDevices) -> bool {
    let mut entries = resource.entries().iter();
    entries.any(|entry| entry.policy.container.multi_device == MultiDevice::First)
}

/// A device of the resource.
struct Candidate<'a> {
    /// The driver, as the index of the first device that has it.
    driver: usize,
    /// The driver and the published NUMA node, as the index of the first device that has both.
    affinity: usize,
    /// How many of its replicas were chosen.
    chosen: usize,
    /// Free replicas; the last one is chosen next.
    free: Vec<(u32, &'a str)>,
}

fn candidates<'a>(resource: &ResourceDevices) -> Vec<Candidate<'a>> {
    let mut drivers = HashMap::new();
    let mut affinities = HashMap::new();
    let candidates = resource.entries().iter().enumerate().map(|(n, entry)| {
        let driver = entry.device.driver_store.as_ref().ok().map(|store| store.path.clone());
        let affinity = (driver.clone(), entry.published_numa_node());
        Candidate {
            driver: *drivers.entry(driver).or_insert(n),
            affinity: *affinities.entry(affinity).or_insert(n),
            chosen: 0,
            free: Vec::new(),
        }
    });
    candidates.collect()
}

impl Candidate<'_> {
    /// How the policy ranks the device before the first choice; lower is better.
    fn load(&self, sharing: Sharing) -> usize {
        let in_use = (sharing.replicas.get() as usize).saturating_sub(self.free.len());
        match sharing.allocation {
            AllocationPolicy::Distributed => in_use,
            AllocationPolicy::Packed => usize::MAX - in_use,
        }
    }
}

/// How many replicas were chosen of devices with each driver, and with each affinity.
struct Counts {
    of_driver: Vec<usize>,
    of_affinity: Vec<usize>,
}

impl Counts {
    fn new(devices: usize) -> Counts {
        Counts { of_driver: vec![0; devices], of_affinity: vec![0; devices] }
    }

    /// The first choice decides for the rest: a device with as many free devices of its driver, and
    /// of its affinity, as are `wanted`.
    fn before_the_first(devices: &[Candidate<'_>], wanted: usize) -> Counts {
        let mut counts = Counts::new(devices.len());
        for device in devices.iter().filter(|device| !device.free.is_empty()) {
            counts.of_driver[device.driver] += 1;
            counts.of_affinity[device.affinity] += 1;
        }
        for count in counts.of_driver.iter_mut().chain(&mut counts.of_affinity) {
            *count = (*count).min(wanted);
        }
        counts
    }

    fn choose(&mut self, device: &mut Candidate<'_>) {
        device.chosen += 1;
        self.of_driver[device.driver] += 1;
        self.of_affinity[device.affinity] += 1;
    }

    /// Lower is better.
    fn rank(
        &self,
        device: &Candidate<'_>,
        one_device: bool,
    ) -> (usize, Reverse<usize>, Reverse<usize>) {
        let repeated = if one_device { usize::MAX - device.chosen } else { device.chosen };
        let of_driver = self.of_driver[device.driver];
        (repeated, Reverse(of_driver), Reverse(self.of_affinity[device.affinity]))
    }
}
