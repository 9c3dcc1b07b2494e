//! Preferred allocation: which of the available slots a container should get.
//!
//! The criteria, in order of weight: no second replica of a device while another device
//! is free, one driver per container, one NUMA node per container if nodes are
//! published, then the policy (distributed or packed), then the order of the devices
//! and of the replicas. The result is a subset of the available slots, has the
//! requested size, and depends only on the arguments.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use crate::AllocationPolicy;
use crate::device_set::{ListedDevice, ResourceDevices};
use crate::slot::split;

/// Why no set of slots can be preferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PreferredAllocationError {
    /// Fewer slots are available than requested.
    #[error("requested {requested} slots, only {available} available")]
    TooFew {
        /// Slots requested.
        requested: usize,
        /// Slots available.
        available: usize,
    },
    /// More slots must be included than are requested.
    #[error("{must_include} slots must be included, only {requested} requested")]
    TooMany {
        /// Slots that must be included.
        must_include: usize,
        /// Slots requested.
        requested: usize,
    },
}

/// Picks `size` of the `available` slots, including those in `must_include`.
pub fn preferred_allocation(
    resource: &ResourceDevices,
    available: &[String],
    must_include: &[String],
    size: usize,
) -> Result<Vec<String>, PreferredAllocationError> {
    let mut chosen = Vec::new();
    let mut seen = HashSet::new();
    chosen.extend(must_include.iter().filter(|id| seen.insert(id.as_str())).cloned());
    if chosen.len() > size {
        return Err(PreferredAllocationError::TooMany {
            must_include: chosen.len(),
            requested: size,
        });
    }
    let mut pool = Pool::new(resource, available.iter().filter(|id| seen.insert(id.as_str())));
    let total = pool.free() + chosen.len();
    if total < size {
        return Err(PreferredAllocationError::TooFew { requested: size, available: total });
    }
    for id in &chosen {
        pool.count_chosen(resource, id);
    }
    while chosen.len() < size {
        let Some(id) = pool.take_best(size - chosen.len()) else { break };
        chosen.push(id);
    }
    Ok(chosen)
}

/// The devices with free slots, and the slots chosen so far.
struct Pool<'a> {
    devices: BTreeMap<usize, Candidate<'a>>,
    policy: AllocationPolicy,
    /// Affinities of the devices chosen so far.
    chosen: Vec<Affinity<'a>>,
}

/// One device with free slots.
struct Candidate<'a> {
    /// Free slots, the next one last.
    free: Vec<(u32, &'a str)>,
    in_use: usize,
    chosen: usize,
    affinity: Affinity<'a>,
}

/// The properties that the devices of one container should share.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Affinity<'a> {
    driver: Option<&'a str>,
    numa_node: Option<u32>,
}

impl<'a> Affinity<'a> {
    fn of(entry: &'a ListedDevice) -> Affinity<'a> {
        Affinity {
            driver: entry.device.driver_store.as_ref().map(|store| store.path.as_str()),
            numa_node: entry.published_numa_node(),
        }
    }
}

/// The index for slots whose device the set does not contain (any more): after all others.
const UNKNOWN: usize = usize::MAX;

impl<'a> Pool<'a> {
    fn new(resource: &'a ResourceDevices, available: impl Iterator<Item = &'a String>) -> Self {
        let replicas = resource.spec.sharing.replicas.get() as usize;
        let mut devices: BTreeMap<usize, Candidate<'a>> = BTreeMap::new();
        for id in available {
            let located = resource.locate(id).ok();
            let index = located.map_or(UNKNOWN, |slot| slot.device_index);
            let affinity = located.map_or(Affinity { driver: None, numa_node: None }, |slot| {
                Affinity::of(slot.entry)
            });
            let device = devices.entry(index).or_insert_with(|| Candidate {
                free: Vec::new(),
                in_use: 0,
                chosen: 0,
                affinity,
            });
            device.free.push((split(id).map_or(u32::MAX, |(_, replica)| replica), id));
        }
        for device in devices.values_mut() {
            device.free.sort_unstable_by_key(|slot| Reverse(*slot));
            device.in_use = replicas.saturating_sub(device.free.len());
        }
        Pool { devices, policy: resource.spec.sharing.allocation, chosen: Vec::new() }
    }

    fn free(&self) -> usize {
        self.devices.values().map(|device| device.free.len()).sum()
    }

    /// Counts a slot that must be included.
    fn count_chosen(&mut self, resource: &'a ResourceDevices, id: &str) {
        let Ok(slot) = resource.locate(id) else { return };
        self.chosen.push(Affinity::of(slot.entry));
        if let Some(device) = self.devices.get_mut(&slot.device_index) {
            device.chosen += 1;
        }
    }

    /// Takes the best free slot when `missing` more are needed.
    fn take_best(&mut self, missing: usize) -> Option<String> {
        let best = self
            .devices
            .iter()
            .filter(|(_, device)| !device.free.is_empty())
            .min_by_key(|(index, device)| self.rank(**index, device, missing))
            .map(|(index, _)| *index)?;
        let device = self.devices.get_mut(&best)?;
        let (_, id) = device.free.pop()?;
        device.chosen += 1;
        self.chosen.push(device.affinity);
        Some(id.to_owned())
    }

    /// Lower is better.
    fn rank(&self, index: usize, device: &Candidate<'a>, missing: usize) -> impl Ord + use<> {
        let matching = |fits: &dyn Fn(&Affinity<'a>) -> bool| {
            if self.chosen.is_empty() {
                // The first device decides for the rest: prefer one with enough matching devices.
                let free = |d: &&Candidate<'a>| !d.free.is_empty() && fits(&d.affinity);
                Reverse(self.devices.values().filter(free).count().min(missing))
            } else {
                Reverse(self.chosen.iter().filter(|c| fits(c)).count())
            }
        };
        let mine = device.affinity;
        let load = match self.policy {
            AllocationPolicy::Distributed => device.in_use,
            AllocationPolicy::Packed => usize::MAX - device.in_use,
        };
        (
            index == UNKNOWN,
            device.chosen,
            matching(&|other| other.driver == mine.driver),
            matching(&|other| *other == mine),
            load,
            index,
        )
    }
}
