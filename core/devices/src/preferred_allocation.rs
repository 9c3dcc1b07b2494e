//! Preferred allocation: which of the available slots a container should get.
//!
//! The criteria, in order of weight: no second replica of a device while another device
//! is free, one driver per container, one NUMA node per container if nodes are
//! published, then the policy (distributed or packed), then the order of the devices
//! and of the replicas. The result is a subset of the available slots, has the
//! requested size, and depends only on the arguments.
//!
//! Slots are chosen in rounds, one of each device, and a round sorts its devices once: the
//! cost is that of sorting the slots. Anyone who may create a pod decides how many are
//! requested, so a search for each of them would be too slow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use crate::AllocationPolicy;
use crate::device_set::{ListedDevice, ResourceDevices, SlotError};

/// Why no set of slots can be preferred.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
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
    /// An ID is listed twice.
    #[error("device ID `{0}` is listed twice")]
    Duplicate(String),
    /// An ID is not that of a slot.
    #[error(transparent)]
    Slot(#[from] SlotError),
}

/// Picks `size` of the `available` slots, including those in `must_include`, which may be
/// listed as available too.
pub fn preferred_allocation(
    resource: &ResourceDevices,
    available: &[String],
    must_include: &[String],
    size: usize,
) -> Result<Vec<String>, PreferredAllocationError> {
    let included = unique(must_include)?;
    unique(available)?;
    if must_include.len() > size {
        return Err(PreferredAllocationError::TooMany {
            must_include: must_include.len(),
            requested: size,
        });
    }
    let free = available.iter().map(String::as_str).filter(|id| !included.contains(id));
    let mut pool = Pool::new(resource, free)?;
    let total = pool.free() + must_include.len();
    if total < size {
        return Err(PreferredAllocationError::TooFew { requested: size, available: total });
    }
    for id in must_include {
        pool.count_included(resource, id)?;
    }
    let mut chosen = must_include.to_vec();
    while chosen.len() < size {
        pool.take_round(size - chosen.len(), &mut chosen);
    }
    Ok(chosen)
}

fn unique(ids: &[String]) -> Result<HashSet<&str>, PreferredAllocationError> {
    let mut set = HashSet::with_capacity(ids.len());
    match ids.iter().find(|id| !set.insert(id.as_str())) {
        Some(twice) => Err(PreferredAllocationError::Duplicate(twice.clone())),
        None => Ok(set),
    }
}

/// The devices with free slots, and how many slots were chosen.
struct Pool<'a> {
    /// In the order of the resource.
    devices: Vec<Candidate<'a>>,
    chosen: Chosen<'a>,
}

/// One device with free slots.
struct Candidate<'a> {
    /// How the policy and the order of the devices rank it; lower is better.
    rank: Rank,
    affinity: Affinity<'a>,
    /// How many of its slots were chosen.
    chosen: usize,
    /// Free slots, the next one last.
    free: Vec<(u32, &'a str)>,
}

/// Load according to the policy, and the device's index in the resource.
type Rank = (usize, usize);

/// The properties that the devices of one container should share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Affinity<'a> {
    driver: Option<&'a str>,
    numa_node: Option<u32>,
}

impl<'a> Affinity<'a> {
    fn of(entry: &'a ListedDevice) -> Affinity<'a> {
        Affinity {
            driver: entry.device.driver_store.as_ref().ok().map(|store| store.path.as_str()),
            numa_node: entry.published_numa_node(),
        }
    }
}

impl<'a> Pool<'a> {
    fn new(
        resource: &'a ResourceDevices,
        available: impl Iterator<Item = &'a str>,
    ) -> Result<Self, SlotError> {
        let mut devices: BTreeMap<usize, Candidate<'a>> = BTreeMap::new();
        for id in available {
            let slot = resource.locate(id)?;
            let device = devices.entry(slot.device_index).or_insert_with(|| Candidate {
                rank: (0, slot.device_index),
                affinity: Affinity::of(slot.entry),
                chosen: 0,
                free: Vec::new(),
            });
            device.free.push((slot.replica, id));
        }
        let replicas = resource.spec.sharing.replicas.get() as usize;
        for device in devices.values_mut() {
            device.free.sort_unstable_by_key(|slot| Reverse(*slot));
            let in_use = replicas.saturating_sub(device.free.len());
            device.rank.0 = match resource.spec.sharing.allocation {
                AllocationPolicy::Distributed => in_use,
                AllocationPolicy::Packed => usize::MAX - in_use,
            };
        }
        Ok(Pool { devices: devices.into_values().collect(), chosen: Chosen::default() })
    }

    fn free(&self) -> usize {
        self.devices.iter().map(|device| device.free.len()).sum()
    }

    /// Counts a slot that must be included.
    fn count_included(&mut self, resource: &'a ResourceDevices, id: &str) -> Result<(), SlotError> {
        let slot = resource.locate(id)?;
        self.chosen.add(Affinity::of(slot.entry));
        let place = self.devices.binary_search_by_key(&slot.device_index, |device| device.rank.1);
        if let Ok(place) = place {
            self.devices[place].chosen += 1;
        }
        Ok(())
    }

    /// Takes one slot of each device that has the fewest chosen slots, at most `missing`.
    fn take_round(&mut self, missing: usize, ids: &mut Vec<String>) {
        let fewest = self.devices.iter().map(|device| device.chosen).min();
        let mut round: Vec<&mut Candidate<'a>> =
            self.devices.iter_mut().filter(|device| Some(device.chosen) == fewest).collect();
        self.chosen.sort(&mut round, missing);
        for device in round.into_iter().take(missing) {
            ids.extend(device.free.pop().map(|(_, id)| id.to_owned()));
            device.chosen += 1;
            self.chosen.add(device.affinity);
        }
        self.devices.retain(|device| !device.free.is_empty());
    }
}

/// How many slots were chosen of devices with each driver and each affinity.
#[derive(Clone, Default)]
struct Chosen<'a> {
    of_driver: BTreeMap<Option<&'a str>, usize>,
    of_affinity: BTreeMap<Affinity<'a>, usize>,
}

impl<'a> Chosen<'a> {
    fn add(&mut self, affinity: Affinity<'a>) {
        *self.of_driver.entry(affinity.driver).or_default() += 1;
        *self.of_affinity.entry(affinity).or_default() += 1;
    }

    /// Sorts devices into the order in which they should be chosen.
    ///
    /// The device chosen next has the most chosen slots with its driver, then with its
    /// affinity. The choice raises both counts, so the next device has the same driver and
    /// affinity while there is one: devices are chosen driver by driver, and affinity by
    /// affinity. The order of drivers, and of affinities, is that of their best devices.
    fn sort(&self, devices: &mut [&mut Candidate<'a>], missing: usize) {
        let mut counts = self.clone();
        if self.of_driver.is_empty() {
            counts.add_first(devices, missing);
        }
        let count = |affinity: &Affinity<'a>| {
            let of_driver = counts.of_driver.get(&affinity.driver).copied().unwrap_or_default();
            let of_affinity = counts.of_affinity.get(affinity).copied().unwrap_or_default();
            (Reverse(of_driver), Reverse(of_affinity))
        };
        let mut best_of_affinity: BTreeMap<Affinity<'a>, Rank> = BTreeMap::new();
        for device in devices.iter() {
            let best = best_of_affinity.entry(device.affinity).or_insert(device.rank);
            *best = device.rank.min(*best);
        }
        let mut best_of_driver = BTreeMap::new();
        for (affinity, rank) in &best_of_affinity {
            let key = (count(affinity), *rank);
            let best = best_of_driver.entry(affinity.driver).or_insert(key);
            *best = key.min(*best);
        }
        devices.sort_by_cached_key(|device| {
            let affinity = &device.affinity;
            let of_affinity = (count(affinity), best_of_affinity[affinity]);
            (best_of_driver[&affinity.driver], of_affinity, device.rank)
        });
    }

    /// Adds the first device, which decides for the rest: one with as many free devices of
    /// its driver, and of its affinity, as are `missing`.
    fn add_first(&mut self, devices: &[&mut Candidate<'a>], missing: usize) {
        let mut free = Chosen::default();
        for device in devices {
            free.add(device.affinity);
        }
        let enough = |count: usize| Reverse(count.min(missing));
        let first = devices.iter().min_by_key(|device| {
            let of_driver = free.of_driver[&device.affinity.driver];
            (enough(of_driver), enough(free.of_affinity[&device.affinity]), device.rank)
        });
        if let Some(first) = first {
            self.add(first.affinity);
        }
    }
}
