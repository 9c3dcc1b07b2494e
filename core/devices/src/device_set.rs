//! The device set: what is offered at one moment, with the devices that went away
//! a short while ago.
//!
//! Each set follows from the one before it, the newest offer and the time; nothing
//! here reads a clock.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::hints::DeviceHints;
use crate::mounts::MountTable;
use crate::slot::split;
use crate::text::fold;
use crate::{
    Ailment, Device, Health, HostFacts, ModelPolicy, NumaTopology, Offer, ResourceOffer,
    ResourceRule, ResourceSpec, Skipped, SlotId,
};

/// A moment on a clock that never goes back, as time since an origin of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(pub Duration);

/// Every resource with its devices at one moment.
#[derive(Clone, Debug, Default)]
pub struct DeviceSet {
    /// Facts of the host.
    pub host: HostFacts,
    /// In the order of the catalog.
    pub resources: Vec<Arc<ResourceDevices>>,
    /// Adapters that belong to no resource.
    pub skipped: Vec<Skipped>,
    /// Rules that claimed no device.
    pub idle_rules: Vec<ResourceRule>,
}

/// One resource's devices.
#[derive(Clone, Debug)]
pub struct ResourceDevices {
    /// The resource.
    pub spec: Arc<ResourceSpec>,
    entries: Vec<Entry>,
    /// Spelled as slot ids spell them; no slot has an entry of its own, so that a
    /// look-up costs the same with 8 slots and with 16,384.
    by_id: HashMap<String, usize>,
}

/// One device of a resource.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The device as it was last seen.
    pub device: Arc<Device>,
    /// The policy it falls under.
    pub policy: Arc<ModelPolicy>,
    /// Health, which is [`Ailment::Gone`] where the newest offer lacks the device.
    pub health: Health,
    gone_since: Option<Moment>,
    pub(crate) mounts: Arc<MountTable>,
    pub(crate) hints: Arc<DeviceHints>,
}

/// A slot as it is advertised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Its id.
    pub id: SlotId,
    /// Its device's health.
    pub health: Health,
    /// Its device's NUMA node, where that is published.
    pub numa_node: Option<u32>,
}

/// Why a slot id names no slot.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SlotFault {
    /// Not a slot id at all.
    #[error("`{0}` is not a slot id (a PnP instance id, a backslash and a replica number)")]
    Malformed(String),
    /// No such device, or no longer.
    #[error("slot `{0}` names a device that resource {1} does not have")]
    UnknownDevice(String, String),
    /// The device has fewer replicas.
    #[error("slot `{0}` is beyond the {1} slots that its device has")]
    BeyondReplicas(String, u32),
    /// The device is unhealthy.
    #[error("slot `{0}` belongs to an unhealthy device: {1}")]
    Unhealthy(String, Ailment),
}

impl DeviceSet {
    /// The set that follows `previous` when `offer` is the newest at `now`.
    #[must_use]
    pub fn next(previous: Option<&DeviceSet>, offer: Offer, now: Moment) -> DeviceSet {
        let present: BTreeSet<String> = offer
            .resources
            .iter()
            .flat_map(|r| &r.devices)
            .map(|(device, _)| fold(device.id.as_str()))
            .collect();
        let resources = offer.resources.into_iter().enumerate().map(|(n, resource)| {
            let before = previous.and_then(|set| set.resources.get(n));
            let gone = before.map(|r| r.gone(&present, now)).unwrap_or_default();
            Arc::new(ResourceDevices::new(resource, gone))
        });
        DeviceSet {
            resources: resources.collect(),
            host: offer.host,
            skipped: offer.skipped,
            idle_rules: offer.idle_rules,
        }
    }

    /// When the next device that went away is to be dropped, if any did: the time to
    /// call [`DeviceSet::next`] again, with the same offer.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.resources.iter().flat_map(|r| r.entries.iter().filter_map(|e| r.drop_at(e))).min()
    }
}

impl ResourceDevices {
    fn new(offer: ResourceOffer, gone: Vec<Entry>) -> ResourceDevices {
        let mut entries: Vec<Entry> = offer
            .devices
            .into_iter()
            .map(|(device, policy)| Entry {
                health: device.health,
                gone_since: None,
                mounts: Arc::new(MountTable::of(&device, &policy)),
                hints: Arc::new(DeviceHints::of(&device)),
                device,
                policy,
            })
            .collect();
        entries.extend(gone);
        let ids = entries.iter().enumerate();
        let by_id = ids.map(|(n, entry)| (entry.device.id.as_str().to_owned(), n)).collect();
        ResourceDevices { spec: offer.spec, entries, by_id }
    }

    /// The devices of this set that are not `present` and not yet due to be dropped.
    fn gone(&self, present: &BTreeSet<String>, now: Moment) -> Vec<Entry> {
        let absent = |entry: &&Entry| !present.contains(&fold(entry.device.id.as_str()));
        self.entries
            .iter()
            .filter(absent)
            .map(|entry| Entry {
                gone_since: Some(entry.gone_since.unwrap_or(now)),
                health: Health::Unhealthy(Ailment::Gone),
                ..entry.clone()
            })
            .filter(|entry| self.drop_at(entry).is_none_or(|at| now < at))
            .collect()
    }

    fn drop_at(&self, entry: &Entry) -> Option<Moment> {
        let Moment(gone) = entry.gone_since?;
        Some(Moment(gone.saturating_add(self.spec.removal_grace)))
    }

    /// Its devices, those that went away last.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Its slots, device by device.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.entries.iter().flat_map(|entry| {
            (0..self.spec.sharing.replicas.get()).map(|replica| Slot {
                id: SlotId { device: entry.device.id.clone(), replica },
                health: entry.health,
                numa_node: entry.published_numa_node(),
            })
        })
    }

    /// The number and the entry of the device that a slot id belongs to, whatever its health.
    pub(crate) fn locate(&self, id: &str) -> Result<(usize, &Entry), SlotFault> {
        let (device, replica) = split(id).ok_or_else(|| SlotFault::Malformed(id.to_owned()))?;
        let Some(&number) = self.by_id.get(device) else {
            return Err(SlotFault::UnknownDevice(id.to_owned(), self.spec.name.to_string()));
        };
        let replicas = self.spec.sharing.replicas.get();
        if replica >= replicas {
            return Err(SlotFault::BeyondReplicas(id.to_owned(), replicas));
        }
        Ok((number, &self.entries[number]))
    }

    /// Like [`ResourceDevices::locate`], for a device that can be given out.
    pub(crate) fn locate_healthy(&self, id: &str) -> Result<(usize, &Entry), SlotFault> {
        let (number, entry) = self.locate(id)?;
        match entry.health {
            Health::Healthy => Ok((number, entry)),
            Health::Unhealthy(ailment) => Err(SlotFault::Unhealthy(id.to_owned(), ailment)),
        }
    }
}

impl Entry {
    /// The device's NUMA node, where the policy publishes it.
    #[must_use]
    pub fn published_numa_node(&self) -> Option<u32> {
        match self.policy.numa {
            NumaTopology::Publish => self.device.numa_node,
            NumaTopology::Withhold => None,
        }
    }
}
