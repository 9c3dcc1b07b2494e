//! Pods: what they request, and what their containers get.

use std::collections::BTreeMap;

use device_plugin::v1beta1::{ContainerAllocateResponse, DeviceSpec, Mount};

/// A pod, which the scheduler placed on this node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PodRequest {
    /// The name of the pod, which is unique on the node.
    pub name: String,
    /// The containers in the order in which they are created: init containers, then the others.
    pub containers: Vec<ContainerRequest>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ContainerRequest {
    /// The name of the container, which is unique in the pod.
    pub name: String,
    /// Whether it is an init container: it ends before the others start, which take its devices.
    pub is_init: bool,
    /// The number of requested devices, by resource.
    pub resources: BTreeMap<String, u32>,
}

impl PodRequest {
    /// A pod whose container `main` requests these resources.
    pub fn new(name: impl Into<String>, resources: BTreeMap<String, u32>) -> Self {
        let main = ContainerRequest { name: "main".to_owned(), is_init: false, resources };
        PodRequest { name: name.into(), containers: vec![main] }
    }

    /// A pod whose container `main` requests one resource.
    pub fn single(name: impl Into<String>, resource: impl Into<String>, count: u32) -> Self {
        PodRequest::new(name, BTreeMap::from([(resource.into(), count)]))
    }

    /// The pod with an init container, which starts before the containers that it has.
    #[must_use]
    pub fn with_init_container(mut self, name: &str, resource: &str, count: u32) -> Self {
        let index = self.containers.iter().filter(|container| container.is_init).count();
        self.containers.insert(index, ContainerRequest::new(name, true, resource, count));
        self
    }

    /// The pod with one more container.
    #[must_use]
    pub fn with_container(mut self, name: &str, resource: &str, count: u32) -> Self {
        self.containers.push(ContainerRequest::new(name, false, resource, count));
        self
    }

    /// How many devices of a resource the scheduler reserves.
    pub(crate) fn count(&self, resource: &str) -> u32 {
        let mut at_once = 0;
        let mut at_start = 0;
        for container in &self.containers {
            let count = container.resources.get(resource).copied().unwrap_or_default();
            if container.is_init {
                at_start = count.max(at_start);
            } else {
                at_once += count;
            }
        }
        at_once.max(at_start)
    }
}

impl ContainerRequest {
    fn new(name: &str, is_init: bool, resource: &str, count: u32) -> Self {
        let resources = BTreeMap::from([(resource.to_owned(), count)]);
        ContainerRequest { name: name.to_owned(), is_init, resources }
    }
}

/// What the kubelet passes to the container runtime for a container. Runtimes on Windows ignore CDI
/// devices.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ContainerView {
    /// The IDs of the allocated devices, by resource.
    pub device_ids: BTreeMap<String, Vec<String>>,
    /// Devices, one for each container path.
    pub devices: Vec<DeviceSpec>,
    /// Mounts, one for each container path.
    pub mounts: Vec<Mount>,
    /// Environment variables.
    pub envs: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// The names of CDI devices, each once.
    pub cdi_devices: Vec<String>,
    /// What the kubelet dropped from the plugins' answers, each with the reason.
    pub dropped: Vec<String>,
}

impl ContainerView {
    /// Adds an answer as `deviceRunContainerOptions` of
    /// `pkg/kubelet/cm/devicemanager/pod_devices.go` does: earlier answers take precedence, and
    /// paths are compared case-sensitively.
    pub(crate) fn merge(&mut self, answer: ContainerAllocateResponse) {
        merge_map(&mut self.envs, answer.envs, "environment variable", &mut self.dropped);
        for device in answer.devices {
            match self.devices.iter().find(|d| d.container_path == device.container_path) {
                None => self.devices.push(device),
                Some(kept) if *kept == device => {}
                Some(kept) => self.dropped.push(format!(
                    "device {} (container path `{}` is already in use)",
                    device.host_path, kept.container_path
                )),
            }
        }
        for mount in answer.mounts {
            match self.mounts.iter().find(|m| m.container_path == mount.container_path) {
                None => self.mounts.push(mount),
                Some(kept) if *kept == mount => {}
                Some(kept) => self.dropped.push(format!(
                    "mount {} (container path `{}` is already in use)",
                    mount.host_path, kept.container_path
                )),
            }
        }
        merge_map(&mut self.annotations, answer.annotations, "annotation", &mut self.dropped);
        for device in answer.cdi_devices {
            if !self.cdi_devices.contains(&device.name) {
                self.cdi_devices.push(device.name);
            }
        }
    }
}

fn merge_map(
    into: &mut BTreeMap<String, String>,
    from: BTreeMap<String, String>,
    what: &str,
    dropped: &mut Vec<String>,
) {
    for (key, value) in from {
        let kept = into.entry(key.clone()).or_insert_with(|| value.clone());
        if *kept != value {
            dropped.push(format!("{what} {key}={value} (already set to another value)"));
        }
    }
}

#[cfg(test)]
mod tests {
    use device_plugin::v1beta1::CdiDevice;

    use super::*;

    fn device(host_path: &str) -> DeviceSpec {
        DeviceSpec { host_path: host_path.to_owned(), ..DeviceSpec::default() }
    }

    fn mount(host_path: &str, container_path: &str) -> Mount {
        Mount {
            host_path: host_path.to_owned(),
            container_path: container_path.to_owned(),
            read_only: true,
        }
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn keeps_the_first_entry_for_each_container_path_and_key() {
        let mut view = ContainerView::default();
        view.merge(ContainerAllocateResponse {
            envs: map(&[("A", "1"), ("B", "2")]),
            devices: vec![device("x"), device("y")],
            mounts: vec![mount("s1", "d1"), mount("s2", "D1")],
            annotations: map(&[("k", "v")]),
            ..ContainerAllocateResponse::default()
        });
        view.merge(ContainerAllocateResponse {
            envs: map(&[("A", "1"), ("B", "3"), ("C", "4")]),
            devices: vec![device("z")],
            mounts: vec![mount("s3", "d1"), mount("s4", "d2")],
            annotations: map(&[("k", "w")]),
            cdi_devices: vec![CdiDevice { name: "v/c=d".to_owned() }],
        });
        assert_eq!(view.devices, [device("x")]);
        assert_eq!(view.mounts, [mount("s1", "d1"), mount("s2", "D1"), mount("s4", "d2")]);
        assert_eq!(view.envs, map(&[("A", "1"), ("B", "2"), ("C", "4")]));
        assert_eq!(view.annotations, map(&[("k", "v")]));
        assert_eq!(view.cdi_devices, ["v/c=d"]);
        assert_eq!(
            view.dropped,
            [
                "device y (container path `` is already in use)",
                "environment variable B=3 (already set to another value)",
                "device z (container path `` is already in use)",
                "mount s3 (container path `d1` is already in use)",
                "annotation k=w (already set to another value)",
            ]
        );
    }
}
