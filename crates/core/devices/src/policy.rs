//! The policy: everything that selection, replicas and plans need from the
//! configuration. `config` builds it; this crate does not know its source.

pub(crate) mod destination;
pub(crate) mod device_class;
pub(crate) mod driver_model;
pub(crate) mod pattern;
pub(crate) mod resource_name;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use host::{DeviceKind, DeviceName, FileName, StorePattern, Vendor};
use strum::{Display, EnumString, VariantNames};

use crate::{
    DescriptionPattern, Destination, DeviceClass, DriverModel, LocationPattern, PciPattern,
    ResourceName,
};

/// Which devices are advertised and how, per driver model.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// The policies of at least one driver model, each at most once. A device that fits several
    /// belongs to the first.
    pub models: Vec<ModelPolicy>,
}

/// The policy for the devices of one driver model.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelPolicy {
    pub model: DriverModel,
    /// The resource of the devices that no rule claims.
    pub resource: ResourceName,
    /// How that resource is shared; rules inherit what they do not set.
    pub sharing: Sharing,
    /// Whether integrated adapters are advertised.
    pub include_integrated: bool,
    /// Whether detachable adapters are advertised.
    pub include_detachable: bool,
    /// `legacy` only: text that an adapter's description must contain, case-insensitively.
    pub match_name: Option<String>,
    /// The rules in order: the first one that matches a device claims it.
    pub rules: Arc<[ResourceRule]>,
    /// What a container gets in addition to its device.
    pub container: Arc<ContainerPolicy>,
    /// Whether the kubelet learns the NUMA nodes of devices. Most Windows kubelets ignore the node,
    /// and some refuse pods because of it.
    pub publish_numa: bool,
    /// How long a removed device stays listed as Unhealthy before it is dropped.
    pub removal_grace: Duration,
    /// The devices that are out of service, of any driver model.
    pub cordoned: Vec<DeviceName>,
}

impl ModelPolicy {
    /// The policy of a driver model without a configuration. That of `legacy` is what the plugin of
    /// 2019 did.
    #[must_use]
    #[allow(clippy::missing_panics_doc, reason = "the default names are valid")]
    pub fn for_model(model: DriverModel) -> ModelPolicy {
        let is_legacy = model == DriverModel::Legacy;
        let resource = match model {
            DriverModel::Wddm => "directx.microsoft.com/display",
            DriverModel::Mcdm => "directx.microsoft.com/compute",
            DriverModel::Legacy => "microsoft.com/directx",
        };
        ModelPolicy {
            model,
            resource: resource.parse().expect("the default names are extended resource names"),
            sharing: Sharing {
                replicas: NonZeroU32::MIN,
                allocation: AllocationPolicy::default(),
                shared_requests: SharedRequests::default(),
            },
            include_integrated: is_legacy,
            include_detachable: is_legacy,
            match_name: is_legacy.then(|| "nvidia".to_owned()),
            rules: Arc::new([]),
            container: Arc::new(ContainerPolicy::default()),
            publish_numa: false,
            removal_grace: Duration::from_mins(10),
            cordoned: Vec::new(),
        }
    }

    /// The class that a container gets where it cannot get its devices individually, if there is
    /// one.
    #[must_use]
    pub fn device_class(&self) -> Option<DeviceClass> {
        self.container.device_class.or(DeviceClass::default_for(self.model))
    }
}

/// How one resource's devices are shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Replicas per device; 1 means exclusive use.
    pub replicas: NonZeroU32,
    /// How containers are distributed over devices.
    pub allocation: AllocationPolicy,
    /// Whether one container may request several replicas of shared devices.
    pub shared_requests: SharedRequests,
}

/// How containers are distributed over the devices of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString, Display, VariantNames)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum AllocationPolicy {
    /// The device with the fewest replicas in use first.
    #[default]
    Distributed,
    /// The device with the most replicas in use first.
    Packed,
}

/// Whether one container may request several replicas of a resource whose devices are
/// shared. More replicas do not give the container more of a device; NVIDIA's device
/// plugin refuses such requests with `failRequestsGreaterThanOne`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString, Display, VariantNames)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum SharedRequests {
    /// Any number, with a warning when several are replicas of one device.
    #[default]
    Any,
    /// One; more are refused with a reason.
    One,
}

/// A resource that claims the devices that match.
#[derive(Clone, PartialEq, Debug)]
pub struct ResourceRule {
    /// The extended resource's name. Two rules may use the same name if they agree on sharing.
    pub name: ResourceName,
    /// The conditions for a device.
    pub matches: DeviceMatch,
    /// Replicas per device, where the rule sets it.
    pub replicas: Option<NonZeroU32>,
    /// Allocation policy, where the rule sets it.
    pub allocation: Option<AllocationPolicy>,
    /// Whether containers get `directx-visible`, where the rule sets it.
    pub visibility: Option<Visibility>,
}

/// The conditions for a rule to claim a device. All conditions that are set must hold.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceMatch {
    /// The vendor, by PCI ID.
    pub vendor: Option<Vendor>,
    pub kind: Option<DeviceKind>,
    /// A pattern that the description contains.
    pub description: Option<DescriptionPattern>,
    /// PCI vendor and device.
    pub pci: Option<PciPattern>,
    /// Minimum dedicated memory in MiB.
    pub min_memory_mib: Option<u64>,
    pub model: Option<DriverModel>,
    pub location: Option<LocationPattern>,
}

/// What a container gets in addition to its device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContainerPolicy {
    /// Which runtime files are mounted.
    pub runtime_mounts: RuntimeMounts,
    /// Whether none of these files, nor the 32-bit filter of `directx-visible`, goes into
    /// `SysWOW64`. The user's mounts there stay.
    pub omit_wow64: bool,
    /// Destinations that are never mounted, compared case-insensitively.
    pub exclude_mounts: Vec<FileName>,
    /// The user's mounts into System32.
    pub additional: AdditionalMounts,
    /// The user's mounts into `SysWOW64`.
    pub additional_wow64: AdditionalMounts,
    /// How a request for several physical devices is handled.
    pub multi_device: MultiDevice,
    /// The class of [`ModelPolicy::device_class`]; `None` means [`DeviceClass::default_for`] the
    /// driver model.
    pub device_class: Option<DeviceClass>,
    /// Whether the variables that name the container's devices, such as `DIRECTX_VISIBLE_DEVICES`,
    /// are left out.
    pub omit_environment_hints: bool,
    /// Whether containers get `directx-visible`; rules inherit it.
    pub visibility: Visibility,
}

/// Which runtime files are mounted, and on which hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString, Display, VariantNames)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum RuntimeMounts {
    /// As `Always`, below build 26100, where Windows does not provide the driver's files to
    /// containers itself. No file from there on.
    #[default]
    Auto,
    /// The driver's files, the additional mounts and the plugin's defaults, on every build.
    Always,
    /// No file is mounted, on any build.
    Never,
    /// The additional mounts of the configuration and the plugin's defaults, on every build. The
    /// driver does not name these files, so Windows does not provide them.
    Extra,
}

/// The user's mounts: vendor → files, which are mounted if they exist, in the order of the
/// configuration.
pub type AdditionalMounts = BTreeMap<Vendor, Vec<AdditionalMount>>;

/// A file of the driver store that the user mounts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdditionalMount {
    /// The file in the driver store folder, which exactly one path must match.
    pub source: StorePattern,
    /// Its name in System32 or `SysWOW64`.
    pub destination: Destination,
}

/// How a request for several physical devices is handled. Windows supports one device
/// entry per container, so several devices cannot be assigned individually.
///
/// A later one is stricter. It applies to a request for devices of several driver models that
/// differ in it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, EnumString, Display, VariantNames,
)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum MultiDevice {
    /// The container gets every device of the host in the device class, with a warning.
    #[default]
    Class,
    /// The container gets only the first of them, with a warning. The others stay allocated.
    First,
    /// The request is refused with a reason.
    Reject,
}

/// Whether containers get the program that hides the devices of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString, Display, VariantNames)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum Visibility {
    /// Containers do not get the files of `directx-visible`.
    #[default]
    Off,
    /// `directx-visible` and its filter are mounted; the container's command must use it.
    Launcher,
    /// As `Launcher`, and while they cannot be mounted, devices are unhealthy and allocations are
    /// refused: without them, such a command fails whenever its container starts again.
    Required,
}
