//! Merges the `Allocate` answers of several plugins into the settings of one container:
//! `deviceRunContainerOptions` of `pkg/kubelet/cm/devicemanager/pod_devices.go`.

use std::collections::BTreeMap;

use super::options::Platform;
use super::pods::{ContainerView, Dropped};
use crate::v1beta1::{ContainerAllocateResponse, DeviceSpec, Mount};

/// Merges answers. Earlier answers take precedence. Paths are compared case-sensitively.
pub(crate) fn merge<'a>(
    name: &str,
    answers: impl IntoIterator<Item = &'a ContainerAllocateResponse>,
    platform: Platform,
) -> ContainerView {
    let mut view = ContainerView { name: name.to_owned(), ..ContainerView::default() };
    for answer in answers {
        merge_map(&mut view.envs, &answer.envs, &mut view.dropped, |name, value| Dropped::Env {
            name,
            value,
        });
        merge_devices(&mut view, &answer.devices);
        merge_mounts(&mut view, &answer.mounts);
        merge_map(&mut view.annotations, &answer.annotations, &mut view.dropped, |key, value| {
            Dropped::Annotation { key, value }
        });
        if platform == Platform::Windows {
            let names = answer.cdi_devices.iter().map(|device| device.name.clone());
            view.dropped.extend(names.map(|name| Dropped::CdiDevice { name }));
        }
    }
    view
}

fn merge_devices(view: &mut ContainerView, devices: &[DeviceSpec]) {
    for device in devices {
        let DeviceSpec { container_path, host_path, .. } = device.clone();
        if view.devices.iter().any(|d| d.container_path == container_path) {
            view.dropped.push(Dropped::Device { container_path, host_path });
        } else {
            view.devices.push(device.clone());
        }
    }
}

fn merge_mounts(view: &mut ContainerView, mounts: &[Mount]) {
    for mount in mounts {
        let Mount { container_path, host_path, .. } = mount.clone();
        if view.mounts.iter().any(|m| m.container_path == container_path) {
            view.dropped.push(Dropped::Mount { container_path, host_path });
        } else {
            view.mounts.push(mount.clone());
        }
    }
}

fn merge_map(
    into: &mut BTreeMap<String, String>,
    from: &BTreeMap<String, String>,
    dropped: &mut Vec<Dropped>,
    conflict: impl Fn(String, String) -> Dropped,
) {
    for (key, value) in from {
        match into.get(key) {
            None => {
                into.insert(key.clone(), value.clone());
            }
            Some(kept) if kept == value => {}
            Some(_) => dropped.push(conflict(key.clone(), value.clone())),
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
        let first = ContainerAllocateResponse {
            envs: map(&[("A", "1"), ("B", "2")]),
            devices: vec![device("x"), device("y")],
            mounts: vec![mount("s1", "d1"), mount("s2", "D1")],
            annotations: map(&[("k", "v")]),
            ..ContainerAllocateResponse::default()
        };
        let second = ContainerAllocateResponse {
            envs: map(&[("A", "1"), ("B", "3"), ("C", "4")]),
            devices: vec![device("z")],
            mounts: vec![mount("s3", "d1"), mount("s4", "d2")],
            annotations: map(&[("k", "w")]),
            cdi_devices: vec![CdiDevice { name: "v/c=d".to_owned() }],
        };
        let view = merge("main", [&first, &second], Platform::Windows);
        assert_eq!(view.devices, [device("x")]);
        assert_eq!(view.mounts, [mount("s1", "d1"), mount("s2", "D1"), mount("s4", "d2")]);
        assert_eq!(view.envs, map(&[("A", "1"), ("B", "2"), ("C", "4")]));
        assert_eq!(view.annotations, map(&[("k", "v")]));
        let dropped: Vec<String> = view.dropped.iter().map(ToString::to_string).collect();
        assert_eq!(
            dropped,
            [
                "device y (container path `` is already in use)",
                "environment variable B=3 (already set to another value)",
                "device z (container path `` is already in use)",
                "mount s3 (container path `d1` is already in use)",
                "annotation k=w (already set to another value)",
                "CDI device v/c=d (not supported on Windows)",
            ]
        );
    }
}
