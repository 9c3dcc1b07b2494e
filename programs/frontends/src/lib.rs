//! The flags of programs that run containers on Windows, for a container with devices.
//!
//! Input: a [`Container`], that is, devices, files and variables. Output: the flags of one
//! [`Frontend`], or the file that it reads instead.
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
use serde::Serialize;

/// What a container gets, independent of the front end.
#[derive(Clone, Copy, Debug)]
pub struct Container<'a> {
    /// Each device by location path, or a class.
    pub devices: &'a [DeviceGrant],
    /// The files of all devices.
    pub mounts: &'a MountPlan,
    /// Environment variables that name the container's devices.
    pub envs: &'a BTreeMap<String, String>,
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

/// Whether environment variables name the container's devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceVariables {
    /// They do.
    Set,
    /// They do not.
    Omit,
}

impl Frontend {
    /// The program's name.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Frontend::Ctr => "ctr",
            Frontend::Nerdctl => "nerdctl",
            Frontend::Docker => "docker",
            Frontend::Crictl => "crictl",
        }
    }

    /// The flags for `run`. `crictl` has none: it reads [`cri_config`].
    #[must_use]
    pub fn flags(self, container: Container<'_>, variables: DeviceVariables) -> Vec<String> {
        let mut flags = Vec::new();
        let mut add = |flag: &str, value: String| flags.extend([flag.to_owned(), value]);
        if self == Frontend::Docker {
            add("--isolation", "process".to_owned());
        }
        for device in container.devices {
            add("--device", self.device(device));
        }
        for mount in container.mounts.mounted() {
            match self {
                Frontend::Ctr => {
                    add("--mount", ctr_mount(&mount.host_path, &mount.container_path));
                }
                Frontend::Nerdctl => add("--volume", volume(mount)),
                Frontend::Docker | Frontend::Crictl => {}
            }
        }
        if variables == DeviceVariables::Set {
            for (name, value) in container.envs {
                add("--env", format!("{name}={value}"));
            }
        }
        flags
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
        (self == Frontend::Docker && files > 0).then(|| {
            format!(
                "docker cannot mount single files on Windows: skipping {files} runtime files. DirectX \
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

fn volume(mount: &MountCandidate) -> String {
    format!("{}:{}:ro", mount.host_path, mount.container_path)
}

/// The part of a CRI container configuration (`ContainerConfig` of `k8s.io/cri-api`) that
/// contains `container`.
#[must_use]
#[expect(clippy::missing_panics_doc, reason = "strings always serialize")]
pub fn cri_config(container: Container<'_>, variables: DeviceVariables) -> String {
    let envs = container.envs.iter().filter(|_| variables == DeviceVariables::Set);
    let config = CriConfig {
        devices: container
            .devices
            .iter()
            .map(|device| CriDevice { host_path: device.host_path() })
            .collect(),
        mounts: container.mounts.mounted().map(CriMount::of).collect(),
        envs: envs.map(|(key, value)| CriEnv { key, value }).collect(),
    };
    let text = serde_json::to_string_pretty(&config);
    text.expect("lists of structs of strings always serialize") + "\n"
}

#[derive(Serialize)]
struct CriConfig<'a> {
    devices: Vec<CriDevice>,
    mounts: Vec<CriMount<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    envs: Vec<CriEnv<'a>>,
}

#[derive(Serialize)]
struct CriDevice {
    host_path: String,
}

#[derive(Serialize)]
struct CriMount<'a> {
    container_path: &'a str,
    host_path: &'a str,
    readonly: bool,
}

impl CriMount<'_> {
    fn of(mount: &MountCandidate) -> CriMount<'_> {
        CriMount {
            container_path: &mount.container_path,
            host_path: &mount.host_path,
            readonly: true,
        }
    }
}

#[derive(Serialize)]
struct CriEnv<'a> {
    key: &'a str,
    value: &'a str,
}
