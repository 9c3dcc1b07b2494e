//! Which driver each slot was allocated with, to find containers that use an earlier driver.
//!
//! The kubelet keeps the answer to an allocation as long as the pod exists, also when its container
//! restarts. So a container uses the files of the driver that its device had at the allocation.

use std::collections::{BTreeSet, HashMap};

use crate::slot::split;
use crate::{Device, DeviceSet, DriverVersion, ResourceDevices, ResourceName};

/// What identifies the driver of a device: its version and its folder in the driver store.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Driver {
    version: Option<DriverVersion>,
    folder: Option<String>,
}

/// The drivers that the slots of one device were allocated with, each with its replicas.
type DeviceUse = Vec<(Driver, BTreeSet<u32>)>;

/// The driver of every slot at its last allocation.
#[derive(Clone, Debug, Default)]
pub struct AllocatedDrivers(HashMap<ResourceName, HashMap<String, DeviceUse>>);

impl Driver {
    fn of(device: &Device) -> Driver {
        Driver {
            version: device.driver_version,
            folder: device.driver_store.as_ref().ok().map(|store| store.path.clone()),
        }
    }

    /// Whether `now` is another driver. A part that is not known differs from nothing.
    fn is_replaced_by(&self, now: &Driver) -> bool {
        fn differ<T>(before: Option<&T>, now: Option<&T>, same: impl Fn(&T, &T) -> bool) -> bool {
            before.zip(now).is_some_and(|(before, now)| !same(before, now))
        }
        differ(self.version.as_ref(), now.version.as_ref(), PartialEq::eq)
            || differ(self.folder.as_ref(), now.folder.as_ref(), |a, b| a.eq_ignore_ascii_case(b))
    }
}

impl AllocatedDrivers {
    /// Records that these slots of the resource were allocated now. Unknown slots are ignored.
    pub fn record<'a>(
        &mut self,
        resource: &ResourceDevices,
        slots: impl IntoIterator<Item = &'a str>,
    ) {
        let uses = self.0.entry(resource.spec.name.clone()).or_default();
        for slot in slots {
            let Ok(slot) = resource.locate(slot) else { continue };
            let device = &slot.entry.device;
            let of_device = uses.entry(device.id.as_str().to_owned()).or_default();
            of_device.retain_mut(|(_, replicas)| {
                replicas.remove(&slot.replica);
                !replicas.is_empty()
            });
            let driver = Driver::of(device);
            match of_device.iter_mut().find(|(known, _)| *known == driver) {
                Some((_, replicas)) => _ = replicas.insert(slot.replica),
                None => of_device.push((driver, [slot.replica].into())),
            }
        }
    }

    /// Forgets devices that are not in `set`, so that there are never more than it has.
    pub fn keep_listed(&mut self, set: &DeviceSet) {
        self.0.retain(|name, uses| {
            let Some(resource) = set.resource(name) else { return false };
            let listed: BTreeSet<&str> =
                resource.entries().iter().map(|entry| entry.device.id.as_str()).collect();
            uses.retain(|id, _| listed.contains(id.as_str()));
            !uses.is_empty()
        });
    }

    /// Every slot that was allocated with another driver than its device has in `set`.
    #[must_use]
    pub fn outdated(&self, set: &DeviceSet) -> Vec<(ResourceName, String)> {
        let slots = self.0.iter().flat_map(|(name, uses)| {
            let ids = uses.iter().flat_map(|(id, of_device)| {
                let replicas = of_device.iter().flat_map(|(_, replicas)| replicas);
                replicas.map(move |replica| format!("{id}\\{replica}"))
            });
            ids.map(move |slot| (name.clone(), slot))
        });
        slots.filter(|(name, slot)| self.is_outdated(set, name, slot)).collect()
    }

    /// Forgets the allocation of a slot, because its container has ended.
    pub fn forget(&mut self, resource: &ResourceName, slot: &str) {
        let Some((id, replica)) = split(slot) else { return };
        let of_device = self.0.get_mut(resource).and_then(|uses| uses.get_mut(id));
        for (_, replicas) in of_device.into_iter().flatten() {
            replicas.remove(&replica);
        }
    }

    /// Whether this slot was allocated with another driver than its device has in `set`. False if
    /// the allocation is not known.
    #[must_use]
    pub fn is_outdated(&self, set: &DeviceSet, resource: &ResourceName, slot: &str) -> bool {
        let allocated = || {
            let (id, replica) = split(slot)?;
            let uses = self.0.get(resource)?.get(id)?;
            let (driver, _) = uses.iter().find(|(_, replicas)| replicas.contains(&replica))?;
            let entry = set.resource(resource)?.locate(slot).ok()?.entry;
            Some(driver.is_replaced_by(&Driver::of(&entry.device)))
        };
        allocated().unwrap_or(false)
    }
}

/// Whether the driver of a device differs between two sets.
#[must_use]
pub fn is_driver_replaced(before: &Device, now: &Device) -> bool {
    Driver::of(before).is_replaced_by(&Driver::of(now))
}
