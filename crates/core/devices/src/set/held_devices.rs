//! The devices that containers hold.

use std::collections::HashSet;

use crate::read::replica_id::split;
use crate::{PnpId, ResourceName};

/// Resource and instance ID of the devices that containers hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeldDevices(HashSet<(String, String)>);

impl HeldDevices {
    /// The devices of `replicas`, each a resource name and a device ID as the kubelet reports them.
    /// An ID that is no replica ID belongs to another plugin and is ignored.
    #[must_use]
    pub fn of_replicas<'a>(replicas: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeldDevices {
        let devices = replicas.into_iter().filter_map(|(resource, id)| {
            let (device, _) = split(id)?;
            Some((resource.to_owned(), device.to_owned()))
        });
        HeldDevices(devices.collect())
    }

    /// Whether a container holds a replica of this device of the resource.
    #[must_use]
    pub fn contains(&self, resource: &ResourceName, device: &PnpId) -> bool {
        self.0.contains(&(resource.to_string(), device.to_string()))
    }
}
