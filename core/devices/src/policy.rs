//! The policy: everything that selection, slots and plans need from the
//! configuration. `settings` builds it; nothing here knows where it came from.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    DescriptionPattern, DriverModel, FileName, LocationPattern, PciPattern, ResourceName,
    StorePath, Vendor,
};

/// What is offered and how, per driver model.
#[derive(Clone, Debug)]
pub struct Policy {
    /// At least one; each driver model at most once. A device that fits several
    /// belongs to the first.
    pub models: Vec<ModelPolicy>,
}

/// The policy for the devices of one driver model.
#[derive(Clone, Debug)]
pub struct ModelPolicy {
    /// The driver model.
    pub model: DriverModel,
    /// The resource of the devices that no rule claims.
    pub resource: ResourceName,
    /// How that resource is shared and spread; rules inherit what they do not set.
    pub sharing: Sharing,
    /// Integrated adapters: left out unless asked for.
    pub integrated: DeviceScope,
    /// Detachable adapters: left out unless asked for.
    pub detachable: DeviceScope,
    /// `legacy` only: the text that an adapter's description must contain, without case.
    pub match_name: Option<String>,
    /// In order: the first rule that matches a device claims it.
    pub rules: Arc<[ResourceRule]>,
    /// What a container is given with a device.
    pub container: Arc<ContainerPolicy>,
    /// Whether devices carry their NUMA node to the kubelet.
    pub numa: NumaTopology,
    /// How long a device that went away is listed Unhealthy before it is dropped.
    pub removal_grace: Duration,
}

/// Whether a kind of adapter is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeviceScope {
    /// Left out, with a reason.
    #[default]
    Exclude,
    /// Offered like any other.
    Include,
}

/// How one resource's devices are shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Slots per device; 1 is exclusive use.
    pub replicas: NonZeroU32,
    /// How containers are spread over devices.
    pub allocation: AllocationPolicy,
}

/// How containers are spread over the devices of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AllocationPolicy {
    /// The device with the fewest slots in use first.
    #[default]
    Distributed,
    /// The device with the most slots in use first.
    Packed,
}

/// A resource that claims the devices which match.
#[derive(Clone, PartialEq, Debug)]
pub struct ResourceRule {
    /// The extended resource's name. Two rules may share it if they agree on sharing.
    pub name: ResourceName,
    /// What a device must be.
    pub matches: DeviceMatch,
    /// Slots per device, where the rule sets it.
    pub replicas: Option<NonZeroU32>,
    /// Spreading, where the rule sets it.
    pub allocation: Option<AllocationPolicy>,
}

/// What a device must be for a rule to claim it: every condition that is there.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceMatch {
    /// The vendor, by PCI id.
    pub vendor: Option<Vendor>,
    /// A pattern that the description contains.
    pub description: Option<DescriptionPattern>,
    /// PCI vendor and device.
    pub pci: Option<PciPattern>,
    /// The least dedicated memory, in MiB.
    pub min_memory_mib: Option<u64>,
    /// The driver model.
    pub model: Option<DriverModel>,
    /// The location path.
    pub location: Option<LocationPattern>,
}

/// What a container is given with its device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContainerPolicy {
    /// Whether the registry's runtime files and the extras are mounted.
    pub runtime_mounts: RuntimeMounts,
    /// Destinations that are never mounted, compared without case.
    pub exclude_mounts: Vec<FileName>,
    /// The user's mounts into System32.
    pub additional: AdditionalMounts,
    /// The user's mounts into `SysWOW64`.
    pub additional_wow64: AdditionalMounts,
    /// What a request for several physical devices gets.
    pub multi_device: MultiDevice,
    /// Whether containers learn which devices are their own.
    pub hints: Hints,
}

/// Whether runtime files are mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RuntimeMounts {
    /// Below build 26100, where containers do not get them by themselves.
    #[default]
    Auto,
    /// On every build.
    Always,
    /// On none.
    Never,
}

/// The user's mounts: vendor → files, in the order of the configuration.
pub type AdditionalMounts = BTreeMap<Vendor, Vec<AdditionalMount>>;

/// A file of the driver store that the user wants mounted where it exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdditionalMount {
    /// The file in the driver store folder.
    pub source: StorePath,
    /// Its name in System32 or `SysWOW64`.
    pub destination: FileName,
}

/// What a request for several physical devices gets. A container on Windows keeps
/// only one device, so several cannot be given one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MultiDevice {
    /// The class GUID: every device of the host, with a warning.
    #[default]
    Class,
    /// A refusal that says why.
    Reject,
}

/// Whether `DIRECTX_VISIBLE_DEVICES` and its companions are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hints {
    /// They are.
    #[default]
    Set,
    /// They are not.
    Omit,
}

/// Whether devices carry their NUMA node to the kubelet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NumaTopology {
    /// They do.
    Publish,
    /// They do not: most Windows kubelets ignore it, and some refuse pods for it.
    #[default]
    Withhold,
}
