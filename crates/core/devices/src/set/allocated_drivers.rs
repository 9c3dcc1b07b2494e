//! Which driver each replica was allocated with, to find containers that use an earlier driver.
//!
//! The kubelet keeps the answer to an allocation as long as the pod exists, also when its container
//! restarts. So a container uses the files of the driver that its device had at the allocation.
//! Allocations before this process started are not known.

use std::collections::HashMap;

use crate::{Device, DeviceSet, DriverVersion, ResourceDevices, ResourceName};

/// What identifies the driver of a device: its version and its folder in the driver store.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Driver {
    version: Option<DriverVersion>,
    folder: Option<String>,
}

/// The driver of every replica at its last allocation, by resource and replica ID.
#[derive(Clone, Debug, Default)]
pub struct AllocatedDrivers(HashMap<(ResourceName, String), Driver>);

/// A replica that was allocated with another driver than its device has.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OutdatedReplica {
    /// The resource.
    pub resource: ResourceName,
    /// The replica's ID.
    pub replica: String,
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

    /// Whether `now` is another driver. A part that is not known is not compared.
    fn is_replaced_by(&self, now: &Driver) -> bool {
        let folders = self.folder.as_ref().zip(now.folder.as_ref());
        self.version.zip(now.version).is_some_and(|(before, now)| before != now)
            || folders.is_some_and(|(before, now)| !before.eq_ignore_ascii_case(now))
    }

    /// This driver and its replacement as text, both in the same form.
    fn texts(&self, now: &Driver) -> [String; 2] {
        if let (Some(before), Some(now)) = (self.version, now.version)
            && before != now
        {
            return [before.to_string(), now.to_string()];
        }
        [self.folder_name(), now.folder_name()]
    }

    fn folder_name(&self) -> String {
        let path = self.folder.as_deref().unwrap_or_default();
        path.rsplit('\\').next().unwrap_or_default().to_owned()
    }
}

impl AllocatedDrivers {
    /// Records that these replicas of the resource were allocated now. Unknown replicas are ignored.
    pub fn record<'a>(
        &mut self,
        resource: &ResourceDevices,
        replicas: impl IntoIterator<Item = &'a str>,
    ) {
        for id in replicas {
            if let Ok(replica) = resource.locate(id) {
                let key = (resource.spec.name.clone(), id.to_owned());
                self.0.insert(key, Driver::of(&replica.entry.device));
            }
        }
    }

    /// Follows a new device set: forgets replicas that are not in it, so that there are never more than
    /// it has.
    pub fn follow(&mut self, set: &DeviceSet) {
        self.0.retain(|(name, replica), _| {
            set.resource(name).is_some_and(|resource| resource.locate(replica).is_ok())
        });
    }

    /// Every replica that was allocated with another driver than its device has in `set`.
    #[must_use]
    pub fn outdated(&self, set: &DeviceSet) -> Vec<OutdatedReplica> {
        self.0
            .keys()
            .filter_map(|(name, replica)| self.outdated_replica(set, name, replica))
            .collect()
    }

    /// Forgets the allocation of a replica, because its container has ended.
    pub fn forget(&mut self, resource: &ResourceName, replica: &str) {
        self.0.remove(&(resource.clone(), replica.to_owned()));
    }

    /// How this replica is outdated: it was allocated with another driver than its device has in `set`.
    /// `None` if the allocation is not known.
    #[must_use]
    pub fn outdated_replica(
        &self,
        set: &DeviceSet,
        resource: &ResourceName,
        replica: &str,
    ) -> Option<OutdatedReplica> {
        let driver = self.0.get(&(resource.clone(), replica.to_owned()))?;
        let device = &set.resource(resource)?.locate(replica).ok()?.entry.device;
        let now = Driver::of(device);
        driver.is_replaced_by(&now).then(|| {
            let [before, now] = driver.texts(&now);
            let device = device.id.to_string();
            OutdatedReplica {
                resource: resource.clone(),
                replica: replica.to_owned(),
                device,
                before,
                now,
            }
        })
    }
}

/// Whether the driver of a device differs between two sets.
#[must_use]
pub fn is_driver_replaced(before: &Device, now: &Device) -> bool {
    Driver::of(before).is_replaced_by(&Driver::of(now))
}
