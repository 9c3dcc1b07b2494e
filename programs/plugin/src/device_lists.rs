//! The lists of devices that the kubelet gets.

use std::sync::Arc;

use devices::{DeviceSet, ResourceDevices};
use kubelet::{AdvertisedDevice, DeviceList, ListTooLarge};

/// The list of each resource.
pub(crate) fn lists(set: &DeviceSet) -> Vec<Result<DeviceList, ListTooLarge>> {
    set.resources.iter().map(list).collect()
}

fn list(resource: &Arc<ResourceDevices>) -> Result<DeviceList, ListTooLarge> {
    DeviceList::new(resource.slots().map(|slot| AdvertisedDevice {
        id: slot.id.to_string(),
        healthy: slot.health.is_healthy(),
        numa_node: slot.numa_node,
    }))
}
