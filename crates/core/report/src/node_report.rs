//! What a plugin reports of its node: everything that labels, condition and Events depend on.
//!
//! The plugin computes it from its device set and sends it to the programs on its node that ask.
//! So a label is the same for the plugin and for a program that read the report.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::str::FromStr;

use devices::{
    Device, DeviceSet, DriverModel, Filter, Health, ListedDevice, ResourceDevices, ResourceName,
    UnhealthyReason,
};
use host::file_values::is_default;
use host::printable::printable;
use host::{
    ComputeCapability, DeviceKind, DriverDate, DriverVersion, HostBuild, LicenseState,
    LocationPath, Platform, PnpId, Vendor,
};
use serde::{Deserialize, Deserializer, Serialize};

/// How many cordons that name no device a report contains. An annotation of a node has room for
/// thousands.
const MAX_UNMATCHED_CORDONS: usize = 64;

/// A node, as its plugin lists it to the kubelet. A reader ignores fields that it does not know.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    pub host: ReportedHost,
    /// The resources, in the order of the plugin.
    pub resources: Vec<ReportedResource>,
    /// A sentence for each cordon that names no device of the host, of at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched_cordons: Vec<String>,
}

/// What is known about the host of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedHost {
    /// The kind of system.
    pub platform: Platform,
    /// Product text such as `Microsoft Windows Server 2022 Datacenter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<HostBuild>,
    /// Whether the devices are made up, and containers get only variables.
    #[serde(default, skip_serializing_if = "is_default")]
    pub demonstration: bool,
}

/// A resource with its devices. Its replicas are not listed: each device has the same number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedResource {
    pub name: ResourceName,
    pub replicas: NonZeroU32,
    pub devices: Vec<ReportedDevice>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedDevice {
    /// `PnP` device instance ID.
    pub id: PnpId,
    /// The name that Device Manager shows.
    pub description: String,
    /// Vendor ID of PCI or ACPI.
    pub vendor_id: u32,
    /// Device ID of PCI.
    pub device_id: u32,
    /// WDDM for a device with a display, MCDM for one that only computes. The driver model that the
    /// plugin was started with does not matter.
    pub driver_model: DriverModel,
    /// What the device is, if the plugin knows kinds and the device is not one of Microsoft's basic
    /// adapters.
    #[serde(default, deserialize_with = "known_name", skip_serializing_if = "Option::is_none")]
    pub kind: Option<DeviceKind>,
    /// The driver's version, if it reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<DriverVersion>,
    /// The date of the driver package, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_date: Option<DriverDate>,
    /// Dedicated memory in MiB, if the driver reports it.
    #[serde(rename = "dedicatedMemoryMiB", skip_serializing_if = "Option::is_none")]
    pub dedicated_memory_mib: Option<u64>,
    /// Built into the processor.
    pub integrated: bool,
    /// Can be removed while the host runs.
    pub detachable: bool,
    /// The first location path, if Windows reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location_path: Option<LocationPath>,
    /// The compute capability of an NVIDIA device, if NVML reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<ComputeCapability>,
    /// Whether the driver has the license that it needs, if NVML reports it. It does not change the
    /// health of the device.
    #[serde(default, deserialize_with = "known_name", skip_serializing_if = "Option::is_none")]
    pub license: Option<LicenseState>,
    /// Whether the host has not had the device for a minute or more. No label describes it.
    #[serde(default)]
    pub gone: bool,
    /// Why the device must not be allocated; absent if it is healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unhealthy: Option<Unhealthy>,
}

/// Why a device is unhealthy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unhealthy {
    /// The kind of the reason, for programs.
    pub kind: UnhealthyKind,
    /// The reason, for administrators.
    pub text: String,
}

/// The kinds of [`UnhealthyReason`], without its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnhealthyKind {
    /// Windows reports a problem code.
    ProblemCode,
    /// The folder of the driver is missing or empty.
    NoDriverFiles,
    /// The adapter cannot be read.
    Unreadable,
    /// The adapter is not advertised now.
    NotAdvertised,
    /// The host no longer reports the device.
    Removed,
    /// An administrator took the device out of service.
    Cordoned,
    /// It is not known whether an administrator took the device out of service.
    CordonsUnknown,
    /// The node does not provide `directx-visible`, which its containers must get.
    NoLauncher,
    /// A kind of a newer plugin.
    #[serde(other)]
    Unknown,
}

impl NodeReport {
    /// The report of a node with these devices.
    #[must_use]
    pub fn of(set: &DeviceSet) -> NodeReport {
        let unmatched = set.unmatched_cordons.iter().take(MAX_UNMATCHED_CORDONS);
        NodeReport {
            host: ReportedHost {
                platform: set.host.platform,
                product: set.host.product.clone(),
                build: set.host.build,
                demonstration: set.host.is_demonstration,
            },
            resources: set.resources.iter().map(|r| ReportedResource::of(r)).collect(),
            unmatched_cordons: unmatched
                .map(|cordon| printable(&cordon.to_string()).into_owned())
                .collect(),
        }
    }

    /// What several daemons report of one node. Each device is listed once, although a device that
    /// changes its driver model is removed from one daemon's list and added to another's at
    /// different times. An entry of a device that the host has counts before one of a device that it
    /// no longer has. Of equal entries, the one in the first resource by name counts.
    #[must_use]
    pub fn merged(reports: impl IntoIterator<Item = NodeReport>) -> NodeReport {
        let mut merged = NodeReport::default();
        for report in reports {
            merged.host = report.host;
            merged.resources.extend(report.resources);
            for cordon in report.unmatched_cordons {
                if !merged.unmatched_cordons.contains(&cordon) {
                    merged.unmatched_cordons.push(cordon);
                }
            }
        }
        let mut best: HashMap<PnpId, (bool, ResourceName)> = HashMap::new();
        for resource in &merged.resources {
            for device in &resource.devices {
                let entry = (!device.is_present(), resource.name.clone());
                let known = best.entry(device.id.clone()).or_insert_with(|| entry.clone());
                if entry < *known {
                    *known = entry;
                }
            }
        }
        for resource in &mut merged.resources {
            let name = &resource.name;
            resource.devices.retain(|device| best[&device.id].1 == *name);
        }
        merged
    }

    /// The devices of all resources.
    pub fn devices(&self) -> impl Iterator<Item = &ReportedDevice> + Clone {
        self.resources.iter().flat_map(|resource| &resource.devices)
    }
}

impl ReportedResource {
    fn of(resource: &ResourceDevices) -> ReportedResource {
        ReportedResource {
            name: resource.spec.name.clone(),
            replicas: resource.spec.sharing.replicas,
            devices: resource.entries().iter().map(ReportedDevice::of).collect(),
        }
    }
}

impl ReportedDevice {
    /// Whether the device can be allocated.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.unhealthy.is_none()
    }

    #[must_use]
    pub fn vendor(&self) -> Vendor {
        Vendor::of(self.vendor_id, Some(&self.id))
    }

    /// Whether the host has the device now, for its resource. One that it no longer has, as while its
    /// driver is being installed, stays listed for its grace period.
    #[must_use]
    pub fn is_present(&self) -> bool {
        use UnhealthyKind::{NotAdvertised, Removed, Unreadable};
        let kind = self.unhealthy.as_ref().map(|unhealthy| unhealthy.kind);
        !matches!(kind, Some(NotAdvertised | Removed | Unreadable))
    }

    fn of(entry: &ListedDevice) -> ReportedDevice {
        let device = &entry.device;
        ReportedDevice {
            id: device.id.clone(),
            description: device.description.clone(),
            vendor_id: device.hardware_id.vendor,
            device_id: device.hardware_id.device,
            driver_model: driver_model(device),
            kind: device.reported_kind(),
            driver_version: device.driver_version,
            driver_date: device.driver_date,
            dedicated_memory_mib: device.dedicated_memory_mib,
            integrated: device.integrated,
            detachable: device.detachable,
            location_path: device.location_path.clone(),
            compute_capability: device.nvidia.compute_capability,
            license: device.nvidia.license.map(|license| license.state),
            gone: entry.is_gone,
            unhealthy: match entry.health {
                Health::Healthy => None,
                Health::Unhealthy(reason) => Some(Unhealthy::of(reason)),
            },
        }
    }
}

impl Unhealthy {
    fn of(reason: UnhealthyReason) -> Unhealthy {
        let kind = match reason {
            UnhealthyReason::ProblemCode(_) => UnhealthyKind::ProblemCode,
            UnhealthyReason::NoDriverFiles => UnhealthyKind::NoDriverFiles,
            UnhealthyReason::Unreadable => UnhealthyKind::Unreadable,
            UnhealthyReason::NotAdvertised => UnhealthyKind::NotAdvertised,
            UnhealthyReason::Removed => UnhealthyKind::Removed,
            UnhealthyReason::Cordoned(_) => UnhealthyKind::Cordoned,
            UnhealthyReason::CordonsUnknown => UnhealthyKind::CordonsUnknown,
            UnhealthyReason::NoLauncher => UnhealthyKind::NoLauncher,
        };
        Unhealthy { kind, text: reason.to_string() }
    }
}

/// One of a few names; `None` if it is one of a newer plugin.
fn known_name<'de, D: Deserializer<'de>, T: FromStr>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(name.and_then(|name| name.parse().ok()))
}

fn driver_model(device: &Device) -> DriverModel {
    if Filter::of(DriverModel::Wddm).matches(device) {
        DriverModel::Wddm
    } else {
        DriverModel::Mcdm
    }
}
