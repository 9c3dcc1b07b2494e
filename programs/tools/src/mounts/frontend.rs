//! The flags of each front end on Windows.
//!
//! - `ctr run` (containerd's `cmd/ctr/commands/run`) splits `--device` at `://` and
//!   reads `--mount` as one CSV record; it does not support `class/GUID`.
//! - `nerdctl run` accepts the same `--device`; its `--mount` is not implemented on
//!   Windows, and its `-v` accepts single files.
//! - `docker run` (moby's `daemon/oci_windows.go`) accepts `class/GUID` in every
//!   version and `IDType://ID` in newer ones; its bind mounts are directories only.
//!   Devices need process isolation, which is not its default on Windows 10 and 11.
//! - `crictl create` reads a CRI container configuration from a file.

use clap::ValueEnum;
use devices::{DeviceGrant, MountCandidate};
use serde::Serialize;

use super::assignment::Assignment;

/// A program that runs containers.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Frontend {
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
pub(super) enum DeviceVariables {
    Set,
    Omit,
}

impl Frontend {
    /// The program's name.
    pub(super) const fn program(self) -> &'static str {
        match self {
            Frontend::Ctr => "ctr",
            Frontend::Nerdctl => "nerdctl",
            Frontend::Docker => "docker",
            Frontend::Crictl => "crictl",
        }
    }

    /// The flags for `run`. `crictl` has none: it reads [`cri_config`].
    pub(super) fn flags(self, assignment: &Assignment, variables: DeviceVariables) -> Vec<String> {
        let mut flags = Vec::new();
        let mut add = |flag: &str, value: String| flags.extend([flag.to_owned(), value]);
        if self == Frontend::Docker {
            add("--isolation", "process".to_owned());
        }
        for device in &assignment.devices {
            add("--device", self.device(device));
        }
        for mount in assignment.mounts.mounted() {
            match self {
                Frontend::Ctr => add("--mount", ctr_mount(mount)),
                Frontend::Nerdctl => add("--volume", volume(mount)),
                Frontend::Docker | Frontend::Crictl => {}
            }
        }
        if variables == DeviceVariables::Set {
            for (name, value) in &assignment.envs {
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
    pub(super) fn limitation(self, assignment: &Assignment) -> Option<String> {
        let files = assignment.mounts.mounted().count();
        (self == Frontend::Docker && files > 0).then(|| {
            format!(
                "docker cannot mount single files on Windows: skipping {files} runtime files. DirectX \
                 works; for other APIs, copy the files inside the container from the driver's folder \
                 below C:\\Windows\\System32\\HostDriverStore"
            )
        })
    }
}

/// `src=…,dst=…,options=ro`, one CSV record for Go's `encoding/csv`. There is no `type`,
/// because hcsshim expects none for a bind mount.
fn ctr_mount(mount: &MountCandidate) -> String {
    let fields = [format!("src={}", mount.host_path), format!("dst={}", mount.container_path)];
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
/// contains `assignment`.
pub(super) fn cri_config(assignment: &Assignment, variables: DeviceVariables) -> String {
    let envs = assignment.envs.iter().filter(|_| variables == DeviceVariables::Set);
    let config = CriConfig {
        devices: assignment
            .devices
            .iter()
            .map(|device| CriDevice { host_path: device.host_path() })
            .collect(),
        mounts: assignment.mounts.mounted().map(CriMount::of).collect(),
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
