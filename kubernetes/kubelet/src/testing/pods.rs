//! Pods: what they request, and the result of their admission.

use std::collections::BTreeMap;
use std::fmt;

use crate::v1beta1::{DeviceSpec, Mount};

/// A pod that the scheduler placed on this node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodRequest {
    /// Unique on the node.
    pub name: String,
    /// The containers in the order of the pod's specification, init containers first.
    pub containers: Vec<ContainerRequest>,
}

impl PodRequest {
    /// Creates a pod with one container that has the pod's name and requests one resource.
    pub fn single(name: impl Into<String>, resource: impl Into<String>, count: u32) -> Self {
        let name = name.into();
        let container = ContainerRequest {
            name: name.clone(),
            kind: ContainerKind::App,
            resources: BTreeMap::from([(resource.into(), count)]),
        };
        PodRequest { name, containers: vec![container] }
    }
}

/// A container of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerRequest {
    /// Unique in the pod.
    pub name: String,
    /// The kind of the container, which determines when it runs.
    pub kind: ContainerKind,
    /// The number of requested devices, by resource.
    pub resources: BTreeMap<String, u32>,
}

/// When a container runs, which determines whether other containers can reuse its devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ContainerKind {
    /// A regular container. No other container reuses its devices.
    #[default]
    App,
    /// An init container. It runs before the others, which can reuse its devices.
    Init,
    /// A sidecar: an init container that keeps running. No other container reuses its devices.
    RestartableInit,
}

/// The result of a pod's admission.
#[derive(Clone, PartialEq, Debug)]
pub struct Admission {
    /// Whether the pod may run.
    pub verdict: Verdict,
    /// What the containers get, in order. Empty if the pod may not run.
    pub containers: Vec<ContainerView>,
}

impl Admission {
    /// Whether the pod may run.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.verdict == Verdict::Admitted
    }
}

/// Whether a pod may run on the node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The pod may run.
    Admitted,
    /// The pod has failed and is not retried.
    Refused(Refused),
}

/// Why a pod may not run. The texts are those of the real kubelet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The reason in the pod's status, such as `UnexpectedAdmissionError`.
    pub reason: String,
    /// The message in the pod's status.
    pub message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

/// What the kubelet passes to the container runtime for one container.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ContainerView {
    /// The name of the container.
    pub name: String,
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
    /// What the kubelet dropped from the plugins' answers.
    pub dropped: Vec<Dropped>,
}

/// A part of a plugin's answer that the kubelet drops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// A device whose container path is already in use.
    Device {
        /// The container path, empty on Windows.
        container_path: String,
        /// The host path of the dropped device.
        host_path: String,
    },
    /// A mount whose container path is already in use.
    Mount {
        /// The container path.
        container_path: String,
        /// The host path of the dropped mount.
        host_path: String,
    },
    /// An environment variable that is already set to another value.
    Env {
        /// The name of the variable.
        name: String,
        /// The dropped value.
        value: String,
    },
    /// An annotation that is already set to another value.
    Annotation {
        /// The key of the annotation.
        key: String,
        /// The dropped value.
        value: String,
    },
    /// A CDI device, which kubelets on Windows do not support.
    CdiDevice {
        /// The name of the device.
        name: String,
    },
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dropped::Device { container_path, host_path } => {
                write!(
                    f,
                    "device {host_path} (container path `{container_path}` is already in use)"
                )
            }
            Dropped::Mount { container_path, host_path } => {
                write!(f, "mount {host_path} (container path `{container_path}` is already in use)")
            }
            Dropped::Env { name, value } => {
                write!(f, "environment variable {name}={value} (already set to another value)")
            }
            Dropped::Annotation { key, value } => {
                write!(f, "annotation {key}={value} (already set to another value)")
            }
            Dropped::CdiDevice { name } => {
                write!(f, "CDI device {name} (not supported on Windows)")
            }
        }
    }
}
