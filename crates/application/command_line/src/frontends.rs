//! The flags of programs that run containers on Windows, for a container with devices.
//!
//! - `ctr run` (containerd's `cmd/ctr/commands/run`) splits `--device` at `://` and
//!   reads `--mount` as one CSV record; it does not support `class/GUID`.
//! - `nerdctl run` accepts the same `--device`; its `--mount` is not implemented on
//!   Windows, and its `-v` accepts single files.
//! - `docker run` (moby's `daemon/oci_windows.go`) accepts `class/GUID` in every
//!   version and `IDType://ID` in newer ones; its bind mounts are directories only.
//!   Devices need process isolation, which is not its default on Windows 10 and 11.
//! - `crictl create` reads a CRI container configuration from a file.

use std::collections::BTreeMap;

use clap::ValueEnum;
use devices::{DeviceGrant, MountCandidate, MountPlan};
use serde_json::{Value, json};

/// What a container gets, independent of the front end.
#[derive(Clone, Copy, Debug)]
pub struct Container<'a> {
    /// Each device by location path, or a class.
    pub devices: &'a [DeviceGrant],
    /// The files of all devices.
    pub mounts: &'a MountPlan,
    /// Environment variables that name the container's devices, if it gets them.
    pub envs: Option<&'a BTreeMap<String, String>>,
}

/// A program that runs containers.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frontend {
    /// containerd's command-line client
    Ctr,
    /// nerdctl
    Nerdctl,
    /// Docker; without runtime files, because it cannot mount single files
    Docker,
    /// prints a fragment of the container configuration for `crictl create`
    Crictl,
}

impl Frontend {
    /// The flags for `run`. `crictl` has none: it reads [`cri_config`].
    #[must_use]
    pub fn flags(self, container: Container<'_>) -> Vec<String> {
        let mut flags = Vec::new();
        if self == Frontend::Docker {
            flags.push(("--isolation", "process".to_owned()));
        }
        for device in container.devices {
            flags.push(("--device", self.device(device)));
        }
        for MountCandidate { host_path, container_path, .. } in container.mounts.mounted() {
            match self {
                Frontend::Ctr => flags.push(("--mount", ctr_mount(host_path, container_path))),
                Frontend::Nerdctl => {
                    flags.push(("--volume", format!("{host_path}:{container_path}:ro")));
                }
                Frontend::Docker | Frontend::Crictl => {}
            }
        }
        for (name, value) in container.envs.into_iter().flatten() {
            flags.push(("--env", format!("{name}={value}")));
        }
        flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }

    fn device(self, device: &DeviceGrant) -> String {
        match (self, device) {
            (Frontend::Ctr | Frontend::Nerdctl, DeviceGrant::Class(class)) => {
                format!("class://{class}")
            }
            (_, device) => device.host_path(),
        }
    }

    /// What this front end cannot assign to a container.
    #[must_use]
    pub fn limitation(self, container: Container<'_>) -> Option<String> {
        let files = container.mounts.mounted().count();
        let s = if files == 1 { "" } else { "s" };
        (self == Frontend::Docker && files > 0).then(|| {
            format!(
                "docker cannot mount single files on Windows: skipping {files} runtime file{s}. DirectX \
                 works; for other APIs, copy the files inside the container from the driver's folder \
                 below C:\\Windows\\System32\\HostDriverStore"
            )
        })
    }
}

/// A read-only bind mount for `ctr`:
/// `src=…,dst=…,options=ro`, one CSV record for Go's `encoding/csv`. There is no `type`,
/// because hcsshim expects none for a bind mount.
#[must_use]
pub fn ctr_mount(host_path: &str, container_path: &str) -> String {
    let fields = [format!("src={host_path}"), format!("dst={container_path}")];
    let [src, dst] = fields.map(|field| {
        if field.contains([',', '"']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    });
    format!("{src},{dst},options=ro")
}

/// The part of a CRI container configuration (`ContainerConfig` of `k8s.io/cri-api`) that
/// contains `container`.
#[must_use]
pub fn cri_config(container: Container<'_>) -> String {
    let devices = container.devices.iter().map(|device| json!({"host_path": device.host_path()}));
    let mounts = container.mounts.mounted().map(|MountCandidate { container_path, host_path, .. }| {
        json!({"container_path": container_path, "host_path": host_path, "readonly": true})
    });
    let mut config = json!({
        "devices": devices.collect::<Value>(),
        "mounts": mounts.collect::<Value>(),
    });
    if let Some(envs) = container.envs.filter(|envs| !envs.is_empty()) {
        config["envs"] =
            envs.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
    }
    format!("{config:#}\n")
}
