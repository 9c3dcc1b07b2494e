//! Which container holds a device, arranged for lookups.

use std::collections::HashMap;
use std::sync::Arc;

/// A container that holds devices. Its names are safe to print.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Holder {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The name of the container in its pod.
    pub container: String,
}

/// The UIDs of pods, by namespace and name. All are safe to print.
pub(super) type PodUids = HashMap<(String, String), String>;

/// The containers that hold devices, by resource and device ID.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attribution {
    resources: HashMap<String, HashMap<String, Arc<Holder>>>,
    uids: PodUids,
}

impl Attribution {
    /// Adds a device of a resource. If two containers are said to hold it, the first one counts.
    pub fn insert(&mut self, resource: &str, device_id: String, holder: Arc<Holder>) {
        let devices = self.resources.entry(resource.to_owned()).or_default();
        devices.entry(device_id).or_insert(holder);
    }

    /// The same, with the UIDs of pods.
    #[must_use]
    pub(super) fn with_uids(self, uids: PodUids) -> Self {
        Attribution { uids, ..self }
    }

    /// The UID of the pod of a container, if the kubelet has the Pods API.
    #[must_use]
    pub fn pod_uid(&self, holder: &Holder) -> Option<&str> {
        // Each lookup makes two allocations, but a scrape has few lookups.
        let uid = self.uids.get(&(holder.namespace.clone(), holder.pod.clone()));
        uid.map(String::as_str)
    }

    /// The container that holds a device of a resource. `device_id` is the ID that was advertised
    /// to the kubelet.
    #[must_use]
    pub fn holder(&self, resource: &str, device_id: &str) -> Option<&Holder> {
        self.resources.get(resource)?.get(device_id).map(|holder| &**holder)
    }

    /// Every device that a container holds: resource, device ID and container, in no order.
    /// Resources and IDs are as the kubelet sent them: to compare, not to print.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &Holder)> {
        self.resources.iter().flat_map(|(resource, devices)| {
            devices.iter().map(|(id, holder)| (&**resource, &**id, &**holder))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribution() -> Attribution {
        let held = [
            ("render", "example.com/gpu", "a"),
            ("render", "example.com/gpu", "b"),
            ("train", "example.com/npu", "a"),
            ("late", "example.com/gpu", "b"),
        ];
        let mut attribution = Attribution::default();
        for (pod, resource, id) in held {
            let [namespace, pod, container] = ["default", pod, "main"].map(str::to_owned);
            let holder = Arc::new(Holder { namespace, pod, container });
            attribution.insert(resource, id.to_owned(), holder);
        }
        attribution
    }

    #[test]
    fn a_device_belongs_to_the_first_container_of_its_resource() {
        let attribution = attribution();
        let pod = |resource, id| attribution.holder(resource, id).map(|holder| &*holder.pod);
        assert_eq!(pod("example.com/gpu", "a"), Some("render"));
        assert_eq!(pod("example.com/gpu", "b"), Some("render"));
        assert_eq!(pod("example.com/npu", "a"), Some("train"));
        assert_eq!(pod("example.com/npu", "b"), None);
        assert_eq!(pod("example.com/other", "a"), None);
    }

    #[test]
    fn every_held_device_is_listed_once() {
        let attribution = attribution();
        let mut listed: Vec<_> =
            attribution.iter().map(|(resource, id, holder)| (resource, id, &*holder.pod)).collect();
        listed.sort_unstable();
        let expected = [
            ("example.com/gpu", "a", "render"),
            ("example.com/gpu", "b", "render"),
            ("example.com/npu", "a", "train"),
        ];
        assert_eq!(listed, expected);
        assert_eq!(Attribution::default().iter().count(), 0);
    }
}
