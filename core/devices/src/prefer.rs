//! Preferred allocation: which of the available slots a container should get.
//!
//! In order of weight: no second replica of a device while another device is free,
//! one driver per set, one NUMA node per set where nodes are published, then the
//! policy (spread or pack), then the order of the devices and of the replicas. The
//! answer is a subset of what is available, of the size asked for, and the same for
//! the same question.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use crate::AllocationPolicy;
use crate::device_set::{Entry, ResourceDevices};
use crate::slot::split;

/// Why no preference can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PreferError {
    /// More is asked for than there is.
    #[error("{wanted} slots are wanted and {available} are available")]
    TooFew {
        /// Slots wanted.
        wanted: usize,
        /// Slots available.
        available: usize,
    },
    /// More must be included than is wanted.
    #[error("{must} slots must be included in a set of {wanted}")]
    TooMany {
        /// Slots that must be included.
        must: usize,
        /// Slots wanted.
        wanted: usize,
    },
}

/// Picks `size` of the `available` slots, those in `must` among them.
pub fn prefer(
    resource: &ResourceDevices,
    available: &[String],
    must: &[String],
    size: usize,
) -> Result<Vec<String>, PreferError> {
    let mut chosen = Vec::new();
    let mut seen = HashSet::new();
    chosen.extend(must.iter().filter(|id| seen.insert(id.as_str())).cloned());
    if chosen.len() > size {
        return Err(PreferError::TooMany { must: chosen.len(), wanted: size });
    }
    let mut pool = Pool::new(resource, available.iter().filter(|id| seen.insert(id.as_str())));
    let total = pool.free() + chosen.len();
    if total < size {
        return Err(PreferError::TooFew { wanted: size, available: total });
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

/// The devices with free slots, and what has been chosen so far.
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

/// What the devices of one container should have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Affinity<'a> {
    driver: Option<&'a str>,
    numa_node: Option<u32>,
}

impl<'a> Affinity<'a> {
    fn of(entry: &'a Entry) -> Affinity<'a> {
        Affinity {
            driver: entry.device.driver_store.as_ref().map(|store| store.path.as_str()),
            numa_node: entry.published_numa_node(),
        }
    }
}

/// Where slots go whose device the set does not know (any more): behind all others.
const UNKNOWN: usize = usize::MAX;

impl<'a> Pool<'a> {
    fn new(resource: &'a ResourceDevices, available: impl Iterator<Item = &'a String>) -> Self {
        let replicas = resource.spec.sharing.replicas.get() as usize;
        let mut devices: BTreeMap<usize, Candidate<'a>> = BTreeMap::new();
        for id in available {
            let located = resource.locate(id).ok();
            let number = located.map_or(UNKNOWN, |(number, _)| number);
            let affinity = located
                .map_or(Affinity { driver: None, numa_node: None }, |(_, e)| Affinity::of(e));
            let device = devices.entry(number).or_insert_with(|| Candidate {
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
        let Ok((number, entry)) = resource.locate(id) else { return };
        self.chosen.push(Affinity::of(entry));
        if let Some(device) = self.devices.get_mut(&number) {
            device.chosen += 1;
        }
    }

    /// Takes the best free slot when `wanted` more are needed.
    fn take_best(&mut self, wanted: usize) -> Option<String> {
        let best = self
            .devices
            .iter()
            .filter(|(_, device)| !device.free.is_empty())
            .min_by_key(|(number, device)| self.rank(**number, device, wanted))
            .map(|(number, _)| *number)?;
        let device = self.devices.get_mut(&best)?;
        let (_, id) = device.free.pop()?;
        device.chosen += 1;
        self.chosen.push(device.affinity);
        Some(id.to_owned())
    }

    /// Lower is better.
    fn rank(&self, number: usize, device: &Candidate<'a>, wanted: usize) -> impl Ord + use<> {
        let kin = |fits: &dyn Fn(&Affinity<'a>) -> bool| {
            if self.chosen.is_empty() {
                // The first device decides for the rest: one with enough kin goes first.
                let free = |d: &&Candidate<'a>| !d.free.is_empty() && fits(&d.affinity);
                Reverse(self.devices.values().filter(free).count().min(wanted))
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
            number == UNKNOWN,
            device.chosen,
            kin(&|other| other.driver == mine.driver),
            kin(&|other| *other == mine),
            load,
            number,
        )
    }
}
