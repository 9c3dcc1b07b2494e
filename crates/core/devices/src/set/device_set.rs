//! The device set: the devices that are advertised at one moment, including removed devices
//! whose grace period has not expired or that a container holds.
//!
//! Each set is computed from the previous set, the newest offer, the time and, when a grace period
//! expires, the devices that containers hold; nothing here reads a clock.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Cordon, Device, Health, HeldDevices, HostFacts, Luid, ModelPolicy, NotAdvertised,
    NotAdvertisedReason, Offer, PnpId, ReplicaId, ResourceName, ResourceOffer, ResourceRule,
    ResourceSpec, UnhealthyReason,
};

/// When a removed device that a container holds is reviewed again. Until the container ends, the
/// kubelet is asked this often.
const REVIEW_INTERVAL: Duration = Duration::from_secs(30);

/// A point in time on a monotonic clock, as the time since an arbitrary origin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(pub Duration);

/// Every resource with its devices at one moment.
#[derive(Clone, Debug, Default)]
pub struct DeviceSet {
    /// Facts of the host.
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
    /// The resource.
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
    /// The policy that applies to it.
    pub policy: Arc<ModelPolicy>,
    /// Health. A device that the newest offer does not contain is unhealthy.
    pub health: Health,
    /// The number by which people know the device, from 0. It is the same in every resource and
    /// stays while the device is listed.
    pub number: usize,
    removal: Option<Removal>,
}

/// The state of a device that the host no longer reports.
#[derive(Clone, Copy, Debug)]
struct Removal {
    since: Moment,
    /// When to review it again; `None` until a container was found to hold it.
    held_until: Option<Moment>,
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
    /// Its ID.
    pub id: ReplicaId,
    /// Its device's health.
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
    /// The set that follows `previous`, given the newest `offer` at time `now`. Removed devices
    /// stay until a [review](DeviceSet::reviewed) drops them.
    #[must_use]
    pub fn next(previous: Option<&DeviceSet>, offer: Offer, now: Moment) -> DeviceSet {
        let present: BTreeSet<PnpId> = offer
            .resources
            .iter()
            .flat_map(|r| &r.devices)
            .map(|(device, _)| device.id.clone())
            .collect();
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
        DeviceSet::of(Some(self), offer, |before| before.still_removed().collect())
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

    /// The resource with this name.
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

    /// When to [review](DeviceSet::reviewed) removed devices, if there are any.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.resources.iter().flat_map(|r| r.entries.iter().filter_map(|e| r.review_at(e))).min()
    }

    /// The set at time `now` without the removed devices whose grace period has expired. Those that
    /// are `held` stay, because a kubelet reports a held device that is not listed as healthy.
    /// `None`: it is not known which devices are held, so only the grace period decides.
    #[must_use]
    pub fn reviewed(&self, held: Option<&HeldDevices>, now: Moment) -> DeviceSet {
        let resources = self.resources.iter().map(|resource| resource.reviewed(held, now));
        DeviceSet { resources: resources.collect(), ..self.clone() }
    }
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
                removal: None,
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

    /// The devices of this set that are not `present`. Windows still lists the adapters in
    /// `not_advertised`.
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
            let reason = not_advertised.get(&entry.device.luid).copied();
            // Nobody knows it while the device is away. A driver that returns gets it some time later.
            let mut device = entry.device.clone();
            if device.nvidia.license.is_some() {
                Arc::make_mut(&mut device).nvidia.license = None;
            }
            removed.push(ListedDevice {
                device,
                removal: Some(entry.removal.unwrap_or(Removal { since: now, held_until: None })),
                health: Health::Unhealthy(reason.unwrap_or(UnhealthyReason::Removed)),
                ..entry.clone()
            });
        }
        removed
    }

    /// The devices of this set that the host does not have.
    fn still_removed(&self) -> impl Iterator<Item = ListedDevice> {
        self.entries.iter().filter(|entry| entry.removal.is_some()).cloned()
    }

    /// These devices after a [review](DeviceSet::reviewed).
    fn reviewed(self: &Arc<Self>, held: Option<&HeldDevices>, now: Moment) -> Arc<ResourceDevices> {
        if !self.entries.iter().any(|entry| self.is_due(entry, now)) {
            return Arc::clone(self);
        }
        let next = Moment(now.0.saturating_add(REVIEW_INTERVAL));
        let mut entries = Vec::new();
        for entry in &self.entries {
            let mut entry = entry.clone();
            if self.is_due(&entry, now) {
                if !held.is_some_and(|held| held.contains(&self.spec.name, &entry.device.id)) {
                    continue;
                }
                entry.removal =
                    entry.removal.map(|removal| Removal { held_until: Some(next), ..removal });
            }
            entries.push(entry);
        }
        Arc::new(ResourceDevices::with(Arc::clone(&self.spec), entries))
    }

    fn is_due(&self, entry: &ListedDevice, now: Moment) -> bool {
        self.review_at(entry).is_some_and(|at| at <= now)
    }

    fn review_at(&self, entry: &ListedDevice) -> Option<Moment> {
        let Removal { since: Moment(since), held_until } = entry.removal?;
        let grace_expires = Moment(since.saturating_add(self.spec.removal_grace));
        Some(held_until.map_or(grace_expires, |until| until.max(grace_expires)))
    }

    /// Its devices; removed devices come last.
    #[must_use]
    pub fn entries(&self) -> &[ListedDevice] {
        &self.entries
    }

    /// The device with this ID.
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
    /// Whether the host no longer reports the device and a container was found to hold it.
    #[must_use]
    pub fn is_removed_and_held(&self) -> bool {
        self.removal.is_some_and(|removal| removal.held_until.is_some())
    }

    /// The device's NUMA node, if the policy publishes it.
    #[must_use]
    pub fn published_numa_node(&self) -> Option<u32> {
        self.device.numa_node.filter(|_| self.policy.publish_numa)
    }
}
