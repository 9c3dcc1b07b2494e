//! What is known at the moment of a scrape.

use std::collections::BTreeMap;
use std::time::Duration;

use devices::{DeviceSet, Luid, Telemetry};

/// What is known at the moment of a scrape.
pub struct Scrape<'a> {
    /// The name of the node.
    pub host_name: &'a str,
    /// The plugin's version.
    pub version: &'a str,
    /// The devices.
    pub devices: &'a DeviceSet,
    /// What was measured of each adapter.
    pub telemetry: &'a BTreeMap<Luid, Telemetry>,
    /// How old these values are; `None` if there are none.
    pub telemetry_age: Option<Duration>,
    /// Who holds which slot; `None` if the kubelet does not say.
    pub holders: Option<&'a [Holder]>,
    /// The processes of containers that hold a device.
    pub processes: &'a [ContainerProcess],
    /// Each resource, and whether a kubelet has its list.
    pub resources: &'a [(String, bool)],
    /// Resource, cause and number of the registrations.
    pub registrations: &'a [(String, &'static str, u64)],
    /// The changes of the configuration.
    pub reloads: ReloadCounts,
    /// How many log lines could not be written.
    pub log_lines_dropped: u64,
    /// Failures to read data for metrics.
    pub readings: &'a [Reading],
}

/// A container that holds a slot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Holder {
    /// The resource.
    pub resource: String,
    /// The slot ID.
    pub slot: String,
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The UID of the pod, if the kubelet reports it.
    pub pod_uid: Option<String>,
    /// The name of the container.
    pub container: String,
    /// The driver that it uses.
    pub driver: HeldDriver,
}

/// Which driver a container uses of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum HeldDriver {
    /// The one that the device has, or it is not known.
    #[default]
    Current,
    /// One that has been replaced since the allocation.
    Outdated,
}

/// A process of a container that holds a device.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ContainerProcess {
    /// The process ID on the host.
    pub process_id: u32,
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
    /// The container's ID in containerd.
    pub container_id: String,
}

/// How many changes of the configuration were applied and rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReloadCounts {
    /// Applied changes.
    pub applied: u64,
    /// Rejected changes.
    pub rejected: u64,
    /// Whether the newest configuration is in use.
    pub current: bool,
}

/// How often reading a source of data for metrics failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The source, such as `telemetry`.
    pub source: &'static str,
    /// The kind of failure, such as `timeout`.
    pub reason: &'static str,
    /// How often.
    pub failures: u64,
}
