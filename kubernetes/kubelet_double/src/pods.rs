//! Pods: what they ask for and what becomes of them.

use std::collections::BTreeMap;
use std::fmt;

use crate::v1beta1::{DeviceSpec, Mount};

/// A pod that the scheduler has sent to this node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodRequest {
    /// Unique on the node.
    pub name: String,
    /// In the order of the pod's specification, init containers first.
    pub containers: Vec<ContainerRequest>,
}

impl PodRequest {
    /// A pod of one container, of the pod's name, that asks for one resource.
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
    /// When it runs.
    pub kind: ContainerKind,
    /// How many devices of which resources.
    pub resources: BTreeMap<String, u32>,
}

/// When a container runs, which decides whether its devices can be used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ContainerKind {
    /// Beside the others; its devices are its own.
    #[default]
    App,
    /// Before the others, which get its devices afterwards.
    Init,
    /// Before and beside the others (a sidecar); its devices are its own.
    RestartableInit,
}

/// What became of a pod.
#[derive(Clone, PartialEq, Debug)]
pub struct Admission {
    /// Whether it may run.
    pub verdict: Verdict,
    /// What its containers are given, in order. Empty where it may not run.
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
    /// It may.
    Admitted,
    /// It has failed, for good.
    Refused(Refused),
}

/// Why a pod may not run, in the kubelet's words.
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

/// What the kubelet hands to the container runtime for one container.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ContainerView {
    /// The container's name.
    pub name: String,
    /// The devices allocated to it, for each resource.
    pub device_ids: BTreeMap<String, Vec<String>>,
    /// One for each container path.
    pub devices: Vec<DeviceSpec>,
    /// One for each container path.
    pub mounts: Vec<Mount>,
    /// Environment variables.
    pub envs: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// What plugins answered and the container does not get.
    pub dropped: Vec<Dropped>,
}

/// Something a plugin answered that the kubelet leaves out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// A device with a container path that another one has already.
    Device {
        /// The path, empty on Windows.
        container_path: String,
        /// What it would have been.
        host_path: String,
    },
    /// A mount with a container path that another one has already.
    Mount {
        /// The path.
        container_path: String,
        /// What it would have been.
        host_path: String,
    },
    /// A variable that has another value already.
    Env {
        /// Its name.
        name: String,
        /// The value it would have had.
        value: String,
    },
    /// An annotation that has another value already.
    Annotation {
        /// Its key.
        key: String,
        /// The value it would have had.
        value: String,
    },
    /// A CDI device: kubelets on Windows know none.
    CdiDevice {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dropped::Device { container_path, host_path } => {
                write!(f, "device {host_path} (container path `{container_path}` is taken)")
            }
            Dropped::Mount { container_path, host_path } => {
                write!(f, "mount {host_path} (container path `{container_path}` is taken)")
            }
            Dropped::Env { name, value } => write!(f, "variable {name}={value} (it is set)"),
            Dropped::Annotation { key, value } => {
                write!(f, "annotation {key}={value} (it is set)")
            }
            Dropped::CdiDevice { name } => write!(f, "CDI device {name} (not on Windows)"),
        }
    }
}
