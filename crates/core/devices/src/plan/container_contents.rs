//! What a container gets in addition to its device entry, and what an administrator should know
//! about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use host::PnpId;

use crate::plan::launcher::LauncherProblem;
use crate::plan::mounts::MountPlan;
use crate::{Device, DeviceClass};

/// What a container gets in addition to its device entry.
#[derive(Clone, PartialEq, Debug)]
pub struct ContainerContents {
    /// The container's physical devices, as in [`Plan`](crate::Plan).
    pub devices: Vec<Arc<Device>>,
    /// Runtime files.
    pub mounts: MountPlan,
    /// Environment variables.
    pub envs: BTreeMap<String, String>,
}

/// Something that an administrator should know about an allocation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, strum::EnumCount)]
pub enum PlanWarning {
    /// Several devices: the container can use every device of the host.
    #[error(
        "requested {count} devices, but Windows supports one device entry per container: the \
         container gets {}", class.content()
    )]
    SeveralDevices {
        /// The container's devices; at least 2.
        count: usize,
        /// The class that the container gets.
        class: DeviceClass,
    },
    /// Several devices under `multiDevice: first`.
    #[error(
        "requested {requested} devices, but Windows supports one device entry per container and \
         multiDevice is first: only `{device}` is assigned"
    )]
    OnlyFirstDevice {
        /// The devices of the request; at least 2.
        requested: usize,
        /// The device that the container gets.
        device: PnpId,
    },
    /// The host cannot assign a single device.
    #[error(
        "this version of Windows cannot assign a device by location path (HCS schema 2.2, Windows \
         1903 or newer): the container gets {}", .0.content()
    )]
    NoLocationPathSupport(DeviceClass),
    /// Replicas of one device add no capacity to a container.
    #[error("{replicas} of the container's replicas belong to the same device `{device}`")]
    ReplicasOfSameDevice {
        /// The container's replicas on the device; at least 2.
        replicas: usize,
        device: PnpId,
    },
    /// The container does not get `directx-visible`.
    #[error(transparent)]
    NoLauncher(#[from] LauncherProblem),
}
