//! The devices that containers hold.

use std::collections::HashSet;

use crate::{PnpId, ReplicaId, ResourceName};

/// Resource and instance ID of the devices that containers hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeldDevices(HashSet<(String, PnpId)>);

impl HeldDevices {
    /// The devices of `replicas`, each a resource name and a device ID as the kubelet reports them.
    /// An ID that is no replica ID belongs to another plugin and is ignored.
    #[must_use]
    pub fn of_replicas<'a>(replicas: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeldDevices {
        let devices = replicas.into_iter().filter_map(|(resource, id)| {
            let replica = ReplicaId::parse(id)?;
            Some((resource.to_owned(), replica.device))
        });
        HeldDevices(devices.collect())
    }

    /// Whether a container holds a replica of this device of the resource.
    #[must_use]
    pub fn contains(&self, resource: &ResourceName, device: &PnpId) -> bool {
        self.0.contains(&(resource.to_string(), device.clone()))
    }
}
