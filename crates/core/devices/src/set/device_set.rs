//! The device set: the devices that are advertised at one moment, including removed devices
//! whose grace period has not expired.
//!
//! Each set is computed from the previous set, the newest offer and the time; nothing here reads a
//! clock.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use host::{Cordon, HostFacts, Luid, PnpId, ReplicaId};

use crate::{
    Device, Health, ModelPolicy, NotAdvertised, NotAdvertisedReason, Offer, ResourceName,
    ResourceOffer, ResourceRule, ResourceSpec, UnhealthyReason,
};

/// When a removed device is gone. The installation of a driver usually takes less time, and must
/// change no label.
const GONE_AFTER: Duration = Duration::from_mins(1);

/// A point in time on a monotonic clock, as the time since an arbitrary origin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(pub Duration);

impl Moment {
    fn plus(self, time: Duration) -> Moment {
        Moment(self.0.saturating_add(time))
    }
}

/// Every resource with its devices at one moment.
#[derive(Clone, Debug, Default)]
pub struct DeviceSet {
    pub host: HostFacts,
    /// The resources in the order of the catalog.
    pub resources: Vec<Arc<ResourceDevices>>,
    /// Adapters that belong to no resource.
    pub not_advertised: Vec<NotAdvertised>,
    /// Rules that match no device.
    pub unmatched_rules: Vec<ResourceRule>,
    /// Cordons that name no listed device of the host; each deserves a warning.
    pub unmatched_cordons: Vec<Cordon>,
}

/// One resource's devices.
#[derive(Clone, Debug)]
pub struct ResourceDevices {
    pub spec: Arc<ResourceSpec>,
    entries: Vec<ListedDevice>,
    /// Device instance ID → index in `entries`.
    index_by_id: HashMap<PnpId, usize>,
}

/// One device of a resource.
#[derive(Clone, Debug)]
pub struct ListedDevice {
    /// The device as last seen.
    pub device: Arc<Device>,
    pub policy: Arc<ModelPolicy>,
    /// Health. A device that the newest offer does not contain is unhealthy.
    pub health: Health,
    /// The number by which people know the device, from 0. It is the same in every resource and
    /// stays while the device is listed.
    pub number: usize,
    /// Since when the newest offer does not contain it.
    removed_since: Option<Moment>,
    /// Whether it was removed a minute ago or more, so that labels leave it out.
    pub is_gone: bool,
}

/// Where a replica ID leads.
#[derive(Clone, Copy)]
pub(crate) struct LocatedReplica<'a> {
    /// The device's index in [`ResourceDevices::entries`].
    pub(crate) device_index: usize,
    pub(crate) number: u32,
    pub(crate) entry: &'a ListedDevice,
}

/// A replica as advertised to the kubelet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replica {
    pub id: ReplicaId,
    pub health: Health,
    /// Its device's NUMA node, if nodes are published.
    pub numa_node: Option<u32>,
}

/// Why a device ID from the kubelet cannot be allocated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, strum::EnumCount)]
pub enum ReplicaError {
    /// The text is not an ID of a replica.
    #[error(
        "malformed device ID `{0}` (expected a PnP instance ID, a backslash and a replica number)"
    )]
    Malformed(String),
    /// The resource has no such device, or no longer has it.
    #[error("unknown device ID `{0}`: resource {1} has no such device")]
    UnknownDevice(String, String),
    /// The device has fewer replicas.
    #[error("replica number of device ID `{0}` is out of range: the device has {1} replicas")]
    BeyondReplicas(String, u32),
    /// The device is unhealthy.
    #[error("device ID `{0}` belongs to an unhealthy device: {1}")]
    Unhealthy(String, UnhealthyReason),
}

impl DeviceSet {
    /// The set that follows `previous`, given the newest `offer` at time `now`. A removed device
    /// stays for its grace period.
    #[must_use]
    pub fn next(previous: Option<&DeviceSet>, offer: Offer, now: Moment) -> DeviceSet {
        let present = present(&offer);
        let not_advertised: HashMap<Luid, UnhealthyReason> = offer
            .not_advertised
            .iter()
            .map(|adapter| match adapter.reason {
                NotAdvertisedReason::Unreadable(_) => (adapter.luid, UnhealthyReason::Unreadable),
                _ => (adapter.luid, UnhealthyReason::NotAdvertised),
            })
            .collect();
        DeviceSet::of(previous, offer, |before| before.removed(&present, &not_advertised, now))
    }

    /// The set that follows this one when the policy changes. `offer` is what the
    /// new policy makes of the snapshot that this set was computed from. A device that it does not
    /// contain was not removed from the host, so it has no grace period.
    #[must_use]
    pub fn reconfigured(&self, offer: Offer) -> DeviceSet {
        let present = present(&offer);
        DeviceSet::of(Some(self), offer, |before| before.still_removed(&present))
    }

    /// The devices of the offer, and those that each resource of the previous set adds.
    fn of(
        previous: Option<&DeviceSet>,
        offer: Offer,
        removed: impl Fn(&ResourceDevices) -> Vec<ListedDevice>,
    ) -> DeviceSet {
        let mut numbers = Numbers::of(previous);
        let resources = offer.resources.into_iter().map(|resource| {
            let before = previous.and_then(|set| set.resource(&resource.spec.name));
            let removed = before.map(|before| removed(before)).unwrap_or_default();
            Arc::new(ResourceDevices::new(resource, removed, &mut numbers))
        });
        let mut set = DeviceSet {
            resources: resources.collect(),
            host: offer.host,
            not_advertised: offer.not_advertised,
            unmatched_rules: offer.unmatched_rules,
            unmatched_cordons: Vec::new(),
        };
        // A removed device stays listed.
        let mut unmatched = offer.unmatched_cordons;
        unmatched.retain(|cordon| !set.entries().any(|entry| entry.device.is_cordoned_by(cordon)));
        set.unmatched_cordons = unmatched;
        set
    }

    #[must_use]
    pub fn resource(&self, name: &ResourceName) -> Option<&Arc<ResourceDevices>> {
        self.resources.iter().find(|resource| resource.spec.name == *name)
    }

    /// The devices of all resources. A device may belong to several resources.
    pub fn entries(&self) -> impl Iterator<Item = &ListedDevice> + Clone {
        self.resources.iter().flat_map(|resource| resource.entries())
    }

    /// The adapters that this resource would advertise if something did not exclude them.
    pub fn excluded_from(&self, resource: &ResourceName) -> impl Iterator<Item = &NotAdvertised> {
        self.not_advertised
            .iter()
            .filter(move |adapter| adapter.resource.as_ref() == Some(resource))
    }

    /// The adapters of all devices.
    #[must_use]
    pub fn luids(&self) -> BTreeSet<Luid> {
        self.entries().map(|entry| entry.device.luid).collect()
    }

    /// The devices that are out of service, each with the reason.
    pub fn cordoned(&self) -> impl Iterator<Item = (&PnpId, UnhealthyReason)> {
        self.entries().filter_map(|entry| match entry.health {
            Health::Unhealthy(reason @ UnhealthyReason::Cordoned(_)) => {
                Some((&entry.device.id, reason))
            }
            _ => None,
        })
    }

    /// When the [next](DeviceSet::next) set differs although the offer is the same, because of
    /// removed devices.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.resources.iter().flat_map(|r| r.entries.iter().filter_map(|e| r.deadline(e))).min()
    }
}

/// The devices that belong to a resource of an offer.
fn present(offer: &Offer) -> BTreeSet<PnpId> {
    let devices = offer.resources.iter().flat_map(|resource| &resource.devices);
    devices.map(|(device, _)| device.id.clone()).collect()
}

/// The numbers of the devices of a set.
struct Numbers {
    by_id: HashMap<PnpId, usize>,
    taken: HashSet<usize>,
}

impl Numbers {
    fn of(set: Option<&DeviceSet>) -> Numbers {
        let entries = set.into_iter().flat_map(DeviceSet::entries);
        let by_id: HashMap<PnpId, usize> =
            entries.map(|entry| (entry.device.id.clone(), entry.number)).collect();
        let taken = by_id.values().copied().collect();
        Numbers { by_id, taken }
    }

    /// The number of a device. A new device gets the lowest one that no other has.
    fn get(&mut self, id: &PnpId) -> usize {
        if let Some(number) = self.by_id.get(id) {
            return *number;
        }
        let mut number = 0;
        while !self.taken.insert(number) {
            number += 1;
        }
        self.by_id.insert(id.clone(), number);
        number
    }
}

impl ResourceDevices {
    fn new(
        offer: ResourceOffer,
        removed: Vec<ListedDevice>,
        numbers: &mut Numbers,
    ) -> ResourceDevices {
        let mut entries: Vec<ListedDevice> = offer
            .devices
            .into_iter()
            .map(|(device, policy)| ListedDevice {
                health: device.health,
                number: numbers.get(&device.id),
                removed_since: None,
                is_gone: false,
                device,
                policy,
            })
            .collect();
        entries.extend(removed);
        ResourceDevices::with(offer.spec, entries)
    }

    fn with(spec: Arc<ResourceSpec>, entries: Vec<ListedDevice>) -> ResourceDevices {
        let ids = entries.iter().enumerate();
        let index_by_id = ids.map(|(n, entry)| (entry.device.id.clone(), n)).collect();
        ResourceDevices { spec, entries, index_by_id }
    }

    /// The devices of this set that are not `present`, and whose grace period has not expired.
    /// Windows still lists the adapters in `not_advertised`.
    fn removed(
        &self,
        present: &BTreeSet<PnpId>,
        not_advertised: &HashMap<Luid, UnhealthyReason>,
        now: Moment,
    ) -> Vec<ListedDevice> {
        let mut removed = Vec::new();
        for entry in &self.entries {
            if present.contains(&entry.device.id) {
                continue;
            }
            let since = entry.removed_since.unwrap_or(now);
            if since.plus(self.spec.removal_grace) <= now {
                continue;
            }
            let reason = not_advertised.get(&entry.device.luid).copied();
            // Nobody knows it while the device is away. A driver that returns gets it some time later.
            let mut device = entry.device.clone();
            if device.nvidia.license.is_some() {
                Arc::make_mut(&mut device).nvidia.license = None;
            }
            removed.push(ListedDevice {
                device,
                removed_since: Some(since),
                is_gone: since.plus(GONE_AFTER) <= now,
                health: Health::Unhealthy(reason.unwrap_or(UnhealthyReason::Removed)),
                ..entry.clone()
            });
        }
        removed
    }

    /// The removed devices of this set that are not `present`.
    fn still_removed(&self, present: &BTreeSet<PnpId>) -> Vec<ListedDevice> {
        let removed = self.entries.iter().filter(|entry| entry.removed_since.is_some());
        removed.filter(|entry| !present.contains(&entry.device.id)).cloned().collect()
    }

    /// The devices without those that were removed, although their grace periods have not expired.
    #[must_use]
    pub fn without_removed(&self) -> ResourceDevices {
        let present = self.entries.iter().filter(|entry| entry.removed_since.is_none());
        ResourceDevices::with(Arc::clone(&self.spec), present.cloned().collect())
    }

    /// When a removed device becomes gone, or is dropped before.
    fn deadline(&self, entry: &ListedDevice) -> Option<Moment> {
        let since = entry.removed_since?;
        let dropped = since.plus(self.spec.removal_grace);
        let gone = (!entry.is_gone).then_some(since.plus(GONE_AFTER));
        Some(gone.map_or(dropped, |gone| gone.min(dropped)))
    }

    /// Its devices; removed devices come last.
    #[must_use]
    pub fn entries(&self) -> &[ListedDevice] {
        &self.entries
    }

    #[must_use]
    pub fn entry(&self, id: &PnpId) -> Option<&ListedDevice> {
        self.index_by_id.get(id).map(|&n| &self.entries[n])
    }

    /// Its replicas, device by device.
    pub fn replicas(&self) -> impl Iterator<Item = Replica> {
        self.entries.iter().flat_map(|entry| {
            (0..self.spec.sharing.replicas.get()).map(|number| Replica {
                id: ReplicaId { device: entry.device.id.clone(), number },
                health: entry.health,
                numa_node: entry.published_numa_node(),
            })
        })
    }

    /// Finds the replica with this ID, whether its device is healthy or not.
    pub(crate) fn locate(&self, id: &str) -> Result<LocatedReplica<'_>, ReplicaError> {
        let ReplicaId { device, number } =
            ReplicaId::parse(id).ok_or_else(|| ReplicaError::Malformed(id.to_owned()))?;
        let Some(&device_index) = self.index_by_id.get(&device) else {
            return Err(ReplicaError::UnknownDevice(id.to_owned(), self.spec.name.to_string()));
        };
        let replicas = self.spec.sharing.replicas.get();
        if number >= replicas {
            return Err(ReplicaError::BeyondReplicas(id.to_owned(), replicas));
        }
        Ok(LocatedReplica { device_index, number, entry: &self.entries[device_index] })
    }

    /// Finds the replica with this ID if its device is healthy.
    pub(crate) fn locate_healthy(&self, id: &str) -> Result<LocatedReplica<'_>, ReplicaError> {
        let replica = self.locate(id)?;
        match replica.entry.health {
            Health::Healthy => Ok(replica),
            Health::Unhealthy(reason) => Err(ReplicaError::Unhealthy(id.to_owned(), reason)),
        }
    }
}

impl ListedDevice {
    /// The device's NUMA node, if the policy publishes it.
    #[must_use]
    pub fn published_numa_node(&self) -> Option<u32> {
        self.device.numa_node.filter(|_| self.policy.publish_numa)
    }
}
