//! What is known at the moment of a scrape.

use std::collections::BTreeMap;
use std::time::Duration;

use device_plugin::Readiness;
use devices::{DeviceSet, Luid, Telemetry};
use win32::container_processes::ContainerProcess;

use crate::configuration::ReloadStatus;

/// What is known at the moment of a scrape.
pub struct Scrape<'a> {
    /// The name of the node.
    pub host_name: &'a str,
    /// The plugin's version.
    pub version: &'a str,
    /// The devices.
    pub devices: &'a DeviceSet,
    /// What was measured of each adapter, and how long ago; `None` if nothing was.
    pub telemetry: Option<(&'a BTreeMap<Luid, Telemetry>, Duration)>,
    /// Who holds which replica; `None` if the kubelet does not say.
    pub holders: Option<&'a [Holder]>,
    /// The processes of containers that hold a device.
    pub processes: &'a [ContainerProcess],
    /// The resources, and whether a kubelet has their lists.
    pub readiness: &'a Readiness,
    /// The changes of the configuration.
    pub reloads: &'a ReloadStatus,
    /// How many log lines could not be written.
    pub log_lines_dropped: u64,
    /// Source, reason and number of the failures to read data for metrics.
    pub readings: &'a [(&'static str, &'static str, u64)],
}

/// A container that holds a replica.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Holder {
    /// The resource.
    pub resource: String,
    /// The replica ID.
    pub replica: String,
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The UID of the pod, if the kubelet reports it.
    pub pod_uid: Option<String>,
    /// The name of the container.
    pub container: String,
    /// Whether its driver has been replaced since the allocation.
    pub outdated: bool,
}
