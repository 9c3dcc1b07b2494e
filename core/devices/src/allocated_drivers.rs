//! Which driver each slot was allocated with, to find containers that use an earlier driver.
//!
//! The kubelet keeps the answer to an allocation as long as the pod exists, also when its container
//! restarts. So a container uses the files of the driver that its device had at the allocation. Of
//! allocations before this process started, the kubelet's record of the answer says which driver
//! that was.

use std::collections::{BTreeSet, HashMap};

use crate::environment_hints::hinted_driver_version;
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
pub struct AllocatedDrivers {
    uses: HashMap<ResourceName, HashMap<String, DeviceUse>>,
    /// Allocations of devices that have not been healthy since this process started.
    earlier: Vec<EarlierAllocation>,
}

/// An allocation before this process started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EarlierAllocation {
    /// The resource.
    pub resource: String,
    /// The slots.
    pub slots: Vec<String>,
    /// The variables of the answer, by name.
    pub envs: Vec<(String, String)>,
    /// The host paths of the files that the answer mounts.
    pub mounts: Vec<String>,
}

/// A slot that was allocated with another driver than its device has.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OutdatedSlot {
    /// The resource.
    pub resource: ResourceName,
    /// The slot's ID.
    pub slot: String,
    /// The device.
    pub device: String,
    /// The driver at the allocation: its version, or the name of its folder if the versions do not
    /// differ.
    pub before: String,
    /// The present driver, in the same form.
    pub now: String,
}

impl Driver {
    fn of(device: &Device) -> Driver {
        Driver {
            version: device.driver_version,
            folder: device.driver_store.as_ref().ok().map(|store| store.path.clone()),
        }
    }

    /// The driver of `device` when `earlier` was answered.
    fn of_earlier(earlier: &EarlierAllocation, device: &Device, set: &DeviceSet) -> Driver {
        let version = hinted_driver_version(&earlier.envs, device.id.as_str());
        let folder = device.driver_store.as_ref().ok().map(|store| {
            let now = store.path.as_str();
            let folders = || earlier.mounts.iter().filter_map(|path| sibling_folder(path, now));
            // A container with several devices has the files of each; files with the same name are
            // mounted from one of them.
            let uses_present = folders().any(|folder| folder.eq_ignore_ascii_case(now));
            let gone = folders().find(|folder| !uses_present && !is_present(folder, set));
            gone.unwrap_or(now).to_owned()
        });
        Driver { version: version.and_then(|text| text.parse().ok()), folder }
    }

    /// Whether `now` is another driver. A part that is not known differs from nothing.
    fn is_replaced_by(&self, now: &Driver) -> bool {
        fn differ<T>(before: Option<&T>, now: Option<&T>, same: impl Fn(&T, &T) -> bool) -> bool {
            before.zip(now).is_some_and(|(before, now)| !same(before, now))
        }
        differ(self.version.as_ref(), now.version.as_ref(), PartialEq::eq)
            || differ(self.folder.as_ref(), now.folder.as_ref(), |a, b| a.eq_ignore_ascii_case(b))
    }

    /// This driver and its replacement as text, both in the same form.
    fn texts(&self, now: &Driver) -> [String; 2] {
        if let (Some(before), Some(now)) = (self.version, now.version)
            && before != now
        {
            return [before.to_string(), now.to_string()];
        }
        let name = |driver: &Driver| {
            let path = driver.folder.as_deref().unwrap_or_default();
            path.rsplit('\\').next().unwrap_or_default().to_owned()
        };
        [name(self), name(now)]
    }
}

/// The driver store folder of `path`, if it is in the same repository as the folder `sibling`.
fn sibling_folder<'a>(path: &'a str, sibling: &str) -> Option<&'a str> {
    let repository = sibling.rfind('\\')? + 1;
    let same = path.get(..repository)?.eq_ignore_ascii_case(&sibling[..repository]);
    let end = repository + path.get(repository..)?.find('\\')?;
    same.then(|| &path[..end])
}

/// Whether a device of `set` has this driver store folder.
fn is_present(folder: &str, set: &DeviceSet) -> bool {
    let mut entries = set.resources.iter().flat_map(|resource| resource.entries());
    entries.any(|entry| {
        let store = entry.device.driver_store.as_ref();
        store.is_ok_and(|store| store.path.eq_ignore_ascii_case(folder))
    })
}

impl AllocatedDrivers {
    /// Records that these slots of the resource were allocated now. Unknown slots are ignored.
    pub fn record<'a>(
        &mut self,
        resource: &ResourceDevices,
        slots: impl IntoIterator<Item = &'a str>,
    ) {
        for id in slots {
            if let Ok(slot) = resource.locate(id) {
                self.insert(&resource.spec.name, id, Driver::of(&slot.entry.device));
            }
        }
    }

    /// Records allocations before this process started. What was allocated since then counts
    /// instead.
    pub fn record_earlier(&mut self, earlier: Vec<EarlierAllocation>, set: &DeviceSet) {
        self.earlier = earlier;
        self.settle_earlier(set);
    }

    /// Takes note of a new device set: forgets devices that are not in it, so that there are never
    /// more than it has.
    pub fn follow(&mut self, set: &DeviceSet) {
        self.uses.retain(|name, uses| {
            let Some(resource) = set.resource(name) else { return false };
            let listed: BTreeSet<&str> =
                resource.entries().iter().map(|entry| entry.device.id.as_str()).collect();
            uses.retain(|id, _| listed.contains(id.as_str()));
            !uses.is_empty()
        });
        self.settle_earlier(set);
    }

    /// Finds the drivers of earlier allocations, except of devices that are not healthy: their
    /// driver may be in the middle of a replacement.
    fn settle_earlier(&mut self, set: &DeviceSet) {
        let mut earlier = std::mem::take(&mut self.earlier);
        for allocation in &mut earlier {
            let resource =
                set.resources.iter().find(|r| r.spec.name.as_str() == allocation.resource);
            let Some(resource) = resource else { continue };
            let is_healthy = |slot: &String| {
                resource.locate(slot).is_ok_and(|slot| slot.entry.health.is_healthy())
            };
            let (settled, waiting) =
                std::mem::take(&mut allocation.slots).into_iter().partition(is_healthy);
            allocation.slots = waiting;
            let settled: Vec<String> = settled;
            for id in settled {
                let Ok(slot) = resource.locate(&id) else { continue };
                let name = &resource.spec.name;
                if self.driver(name, &id).is_none() {
                    let driver = Driver::of_earlier(allocation, &slot.entry.device, set);
                    self.insert(name, &id, driver);
                }
            }
        }
        earlier.retain(|allocation| !allocation.slots.is_empty());
        self.earlier = earlier;
    }

    fn insert(&mut self, resource: &ResourceName, slot: &str, driver: Driver) {
        self.forget(resource, slot);
        let Some((id, replica)) = split(slot) else { return };
        let of_device =
            self.uses.entry(resource.clone()).or_default().entry(id.to_owned()).or_default();
        match of_device.iter_mut().find(|(known, _)| *known == driver) {
            Some((_, replicas)) => _ = replicas.insert(replica),
            None => of_device.push((driver, [replica].into())),
        }
    }

    /// The driver of a slot at its last allocation, if that is known.
    fn driver(&self, resource: &ResourceName, slot: &str) -> Option<&Driver> {
        let (id, replica) = split(slot)?;
        let mut uses = self.uses.get(resource)?.get(id)?.iter();
        uses.find(|(_, replicas)| replicas.contains(&replica)).map(|(driver, _)| driver)
    }

    /// Every slot that was allocated with another driver than its device has in `set`.
    #[must_use]
    pub fn outdated(&self, set: &DeviceSet) -> Vec<OutdatedSlot> {
        let slots = self.uses.iter().flat_map(|(name, uses)| {
            let ids = uses.iter().flat_map(|(id, of_device)| {
                let replicas = of_device.iter().flat_map(|(_, replicas)| replicas);
                replicas.map(move |replica| format!("{id}\\{replica}"))
            });
            ids.map(move |slot| (name, slot))
        });
        slots.filter_map(|(name, slot)| self.outdated_slot(set, name, &slot)).collect()
    }

    /// Forgets the allocation of a slot, because its container has ended.
    pub fn forget(&mut self, resource: &ResourceName, slot: &str) {
        let Some((id, replica)) = split(slot) else { return };
        let of_device = self.uses.get_mut(resource).and_then(|uses| uses.get_mut(id));
        if let Some(of_device) = of_device {
            of_device.retain_mut(|(_, replicas)| {
                replicas.remove(&replica);
                !replicas.is_empty()
            });
        }
    }

    /// How this slot is outdated: it was allocated with another driver than its device has in `set`.
    /// `None` if the allocation is not known.
    #[must_use]
    pub fn outdated_slot(
        &self,
        set: &DeviceSet,
        resource: &ResourceName,
        slot: &str,
    ) -> Option<OutdatedSlot> {
        let driver = self.driver(resource, slot)?;
        let device = &set.resource(resource)?.locate(slot).ok()?.entry.device;
        let now = Driver::of(device);
        driver.is_replaced_by(&now).then(|| {
            let [before, now] = driver.texts(&now);
            let device = device.id.to_string();
            OutdatedSlot { resource: resource.clone(), slot: slot.to_owned(), device, before, now }
        })
    }
}

/// Whether the driver of a device differs between two sets.
#[must_use]
pub fn is_driver_replaced(before: &Device, now: &Device) -> bool {
    Driver::of(before).is_replaced_by(&Driver::of(now))
}
