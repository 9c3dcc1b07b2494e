//! The devices that containers hold, as the kubelet reports them.

use std::collections::{HashMap, HashSet};

use crate::slot::split;
use crate::{PnpId, ResourceName};

/// The devices that containers hold, by resource.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeldDevices(HashMap<String, HashSet<String>>);

impl HeldDevices {
    /// The devices of `slots`, each a resource name and a device ID as the kubelet reports them. An
    /// ID that is no slot ID belongs to another plugin and is ignored.
    #[must_use]
    pub fn of_slots<'a>(slots: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeldDevices {
        let mut held: HashMap<String, HashSet<String>> = HashMap::new();
        for (resource, id) in slots {
            if let Some((device, _)) = split(id) {
                held.entry(resource.to_owned()).or_default().insert(device.to_owned());
            }
        }
        HeldDevices(held)
    }

    /// Whether a container holds a slot of this device of the resource.
    #[must_use]
    pub fn contains(&self, resource: &ResourceName, device: &PnpId) -> bool {
        self.0.get(resource.as_str()).is_some_and(|devices| devices.contains(device.as_str()))
    }
}
