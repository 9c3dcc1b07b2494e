//! Which container holds a device: the assignments of a response, arranged for lookups.

use std::collections::HashMap;
use std::sync::Arc;

use super::response::{Assignment, Holder};

/// The containers that hold devices, by resource and device ID.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attribution {
    resources: HashMap<String, HashMap<String, Arc<Holder>>>,
}

impl Attribution {
    /// Arranges the assignments of a response. If two containers are said to hold the same device,
    /// the first one counts.
    #[must_use]
    pub fn new(assignments: impl IntoIterator<Item = Assignment>) -> Self {
        let mut resources: HashMap<String, HashMap<String, Arc<Holder>>> = HashMap::new();
        for Assignment { holder, resource, device_ids } in assignments {
            let devices = resources.entry(resource).or_default();
            for id in device_ids {
                devices.entry(id).or_insert_with(|| Arc::clone(&holder));
            }
        }
        Attribution { resources }
    }

    /// The container that holds a device of a resource. `device_id` is the ID that was advertised
    /// to the kubelet, such as `<PnP instance ID>\<replica>`.
    #[must_use]
    pub fn holder(&self, resource: &str, device_id: &str) -> Option<&Holder> {
        self.resources.get(resource)?.get(device_id).map(|holder| &**holder)
    }

    /// The devices of a resource that containers hold, with their holders, in no order. IDs are as
    /// the kubelet sent them: to compare, not to print.
    pub fn devices(&self, resource: &str) -> impl Iterator<Item = (&str, &Holder)> {
        let devices = self.resources.get(resource).into_iter().flatten();
        devices.map(|(id, holder)| (&**id, &**holder))
    }

    /// Whether no container holds a device.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_resources::response::assignments;
    use crate::pod_resources::response::tests::{pod, response};

    fn attribution() -> Attribution {
        let pods = vec![
            pod("render", "example.com/gpu", &[r"PCI\A\3\0", r"PCI\A\3\1"]),
            pod("train", "example.com/npu", &[r"PCI\A\3\0"]),
            pod("late", "example.com/gpu", &[r"PCI\A\3\1"]),
        ];
        Attribution::new(assignments(&response(pods)).unwrap())
    }

    #[test]
    fn a_device_belongs_to_the_first_container_of_its_resource() {
        let attribution = attribution();
        let pod = |resource, id| attribution.holder(resource, id).map(|holder| &*holder.pod);
        assert_eq!(pod("example.com/gpu", r"PCI\A\3\0"), Some("render"));
        assert_eq!(pod("example.com/gpu", r"PCI\A\3\1"), Some("render"));
        assert_eq!(pod("example.com/npu", r"PCI\A\3\0"), Some("train"));
        assert_eq!(pod("example.com/npu", r"PCI\A\3\1"), None);
        assert_eq!(pod("example.com/other", r"PCI\A\3\0"), None);
    }

    #[test]
    fn the_devices_of_one_resource_are_listed() {
        let attribution = attribution();
        let mut ids: Vec<_> = attribution.devices("example.com/gpu").map(|(id, _)| id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [r"PCI\A\3\0", r"PCI\A\3\1"]);
        assert_eq!(attribution.devices("example.com/other").count(), 0);
        assert!(!attribution.is_empty() && Attribution::default().is_empty());
    }
}
