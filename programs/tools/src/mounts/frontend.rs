//! What each front end takes on Windows, in its own words.
//!
//! - `ctr run` (containerd's `cmd/ctr/commands/run`) splits `--device` at `://` and
//!   reads `--mount` as one CSV record; it knows no `class/GUID`.
//! - `nerdctl run` takes the same `--device`; its `--mount` is not implemented on
//!   Windows, and its `-v` takes single files.
//! - `docker run` (moby's `daemon/oci_windows.go`) takes `class/GUID` on every
//!   version and `IDType://ID` on newer ones; its bind mounts are directories only.
//!   Devices need process isolation, which is not its default on Windows 10 and 11.
//! - `crictl create` takes a CRI container configuration from a file.

use clap::ValueEnum;
use devices::{DISPLAY_ADAPTER_CLASS, DeviceGrant, MountCandidate};
use serde::Serialize;

use super::grants::Grants;

/// A program that runs containers.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Frontend {
    /// containerd's own
    Ctr,
    /// nerdctl
    Nerdctl,
    /// Docker; devices without the runtime files, as it cannot mount single files
    Docker,
    /// a fragment of the container configuration for `crictl create`
    Crictl,
}

/// Whether the container is told which devices are its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Environment {
    Told,
    NotTold,
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

    /// The flags for `run`. `crictl` has none: it reads [`fragment`].
    pub(super) fn flags(self, grants: &Grants, environment: Environment) -> Vec<String> {
        let mut flags = Vec::new();
        let mut add = |flag: &str, value: String| flags.extend([flag.to_owned(), value]);
        if self == Frontend::Docker {
            add("--isolation", "process".to_owned());
        }
        for device in &grants.devices {
            add("--device", self.device(device));
        }
        for mount in grants.mounts.mounted() {
            match self {
                Frontend::Ctr => add("--mount", ctr_mount(mount)),
                Frontend::Nerdctl => add("--volume", volume(mount)),
                Frontend::Docker | Frontend::Crictl => {}
            }
        }
        if environment == Environment::Told {
            for (name, value) in &grants.envs {
                add("--env", format!("{name}={value}"));
            }
        }
        flags
    }

    fn device(self, device: &DeviceGrant) -> String {
        match (self, device) {
            (Frontend::Ctr | Frontend::Nerdctl, DeviceGrant::Class) => {
                format!("class://{DISPLAY_ADAPTER_CLASS}")
            }
            (_, device) => device.host_path(),
        }
    }

    /// What this front end cannot give a container.
    pub(super) fn shortcoming(self, grants: &Grants) -> Option<String> {
        let files = grants.mounts.mounted().count();
        (self == Frontend::Docker && files > 0).then(|| {
            format!(
                "docker mounts no single files on Windows, so {files} runtime files are left out: \
                 DirectX works, other APIs need them copied in the container from the driver's \
                 folder, which Windows shows there below C:\\Windows\\System32\\HostDriverStore"
            )
        })
    }
}

/// `src=…,dst=…,options=ro`, one CSV record as Go's `encoding/csv` reads it. No
/// `type`: hcsshim wants none for a bind mount.
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

/// The part of a CRI container configuration that `grants` stands for
/// (`ContainerConfig` of `k8s.io/cri-api`).
pub(super) fn fragment(grants: &Grants, environment: Environment) -> String {
    let told = environment == Environment::Told;
    let envs = grants.envs.iter().filter(|_| told);
    let fragment = Fragment {
        devices: grants
            .devices
            .iter()
            .map(|device| FragmentDevice { host_path: device.host_path() })
            .collect(),
        mounts: grants.mounts.mounted().map(FragmentMount::of).collect(),
        envs: envs.map(|(key, value)| FragmentEnv { key, value }).collect(),
    };
    let text = serde_json::to_string_pretty(&fragment);
    text.expect("lists of structs with text alone always serialise") + "\n"
}

#[derive(Serialize)]
struct Fragment<'a> {
    devices: Vec<FragmentDevice>,
    mounts: Vec<FragmentMount<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    envs: Vec<FragmentEnv<'a>>,
}

#[derive(Serialize)]
struct FragmentDevice {
    host_path: String,
}

#[derive(Serialize)]
struct FragmentMount<'a> {
    container_path: &'a str,
    host_path: &'a str,
    readonly: bool,
}

impl FragmentMount<'_> {
    fn of(mount: &MountCandidate) -> FragmentMount<'_> {
        FragmentMount {
            container_path: &mount.container_path,
            host_path: &mount.host_path,
            readonly: true,
        }
    }
}

#[derive(Serialize)]
struct FragmentEnv<'a> {
    key: &'a str,
    value: &'a str,
}
