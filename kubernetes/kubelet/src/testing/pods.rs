//! Pods: what they request, and what their container gets.

use std::collections::BTreeMap;

use crate::v1beta1::{ContainerAllocateResponse, DeviceSpec, Mount};

/// A pod with one container, which the scheduler placed on this node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodRequest {
    /// Unique on the node.
    pub name: String,
    /// The number of requested devices, by resource.
    pub resources: BTreeMap<String, u32>,
}

impl PodRequest {
    /// Creates a pod that requests one resource.
    pub fn single(name: impl Into<String>, resource: impl Into<String>, count: u32) -> Self {
        PodRequest { name: name.into(), resources: BTreeMap::from([(resource.into(), count)]) }
    }
}

/// What the kubelet passes to the container runtime for the container.
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
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// The names of CDI devices, each once.
    pub cdi_devices: Vec<String>,
    /// What the kubelet dropped from the plugins' answers, each with the reason.
    pub dropped: Vec<String>,
}

impl ContainerView {
    /// Adds an answer as `deviceRunContainerOptions` of `pkg/kubelet/cm/devicemanager/pod_devices.go`
    /// does on Windows: earlier answers take precedence, and paths are compared case-sensitively.
    pub(crate) fn merge(&mut self, answer: ContainerAllocateResponse) {
        let used = |path: &str| format!("(container path `{path}` is already in use)");
        merge_map(&mut self.envs, answer.envs, "environment variable", &mut self.dropped);
        for device in answer.devices {
            let kept = self.devices.iter().find(|d| d.container_path == device.container_path);
            if kept == Some(&device) {
                continue;
            }
            if kept.is_some() {
                let why = used(&device.container_path);
                self.dropped.push(format!("device {} {why}", device.host_path));
            } else {
                self.devices.push(device);
            }
        }
        for mount in answer.mounts {
            let kept = self.mounts.iter().find(|m| m.container_path == mount.container_path);
            if kept == Some(&mount) {
                continue;
            }
            if kept.is_some() {
                let why = used(&mount.container_path);
                self.dropped.push(format!("mount {} {why}", mount.host_path));
            } else {
                self.mounts.push(mount);
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
    use super::*;
    use crate::v1beta1::CdiDevice;

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
