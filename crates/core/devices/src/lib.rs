//! DirectX adapters, and the decisions about them as pure functions.
//!
//! From the adapters that a source reports and a policy, this crate computes the devices, the
//! reason for each adapter that is not advertised, the replicas, and what a container gets. It does no I/O, reads
//! no clock or environment variables, and does not log.

/// The version that programs, logs and metrics name. `cargo xtask` adds the commit to that of a build
/// of the main branch, with this variable.
pub const VERSION: &str = match option_env!("DIRECTX_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

mod offer;
mod plan;
mod read;
pub mod report;
mod select;
mod set;
mod text;

pub use offer::device_class::DeviceClass;
pub use offer::pattern::{DescriptionPattern, LocationPattern, PciPattern};
pub use offer::policy::{
    AdditionalMount, AdditionalMounts, AllocationPolicy, ContainerPolicy, DeviceMatch, ModelPolicy,
    MultiDevice, Policy, ResourceRule, RuntimeMounts, SharedRequests, Sharing, Visibility,
};
pub use offer::resource_name::{ResourceName, ResourceNameError};
pub use offer::{Catalog, Offer, ResourceOffer, ResourceOrigin, ResourceSpec};
pub use plan::container_contents::{ContainerContents, PlanWarning};
pub use plan::environment_hints::visible_devices_variable;
pub use plan::launcher::{LAUNCHER_FILES, LauncherFiles, LauncherProblem, launcher_root};
pub use plan::mounts::{
    FIRST_BUILD_WITHOUT_MOUNTS, FileDecision, LeftOut, MountCandidate, MountOrigin, MountOutcome,
    MountPlan, NOT_APPLIED_HINT, NoMountsReason,
};
pub use plan::preferred_allocation::preferred_allocation;
pub use plan::source_patterns::{Disk, MatchingFiles};
pub use plan::{
    DeviceGrant, Plan, PlanError, SingleDevice, contents, plan, plan_on_disk, single_device,
};
pub use read::adapter::{
    Adapter, Attribute, Attributes, DriverKey, DriverStore, DriverVersion, HardwareId,
    LocationPath, Luid, PnpDevice, PnpId, StoreFiles,
};
pub use read::copy_to_vm::{CopyToVmKey, CopyToVmKind, CopyToVmValue};
pub use read::cordon::{CORDON_ANNOTATION, Cordon, CordonSource, Cordons, DeviceName};
pub use read::driver_date::DriverDate;
pub use read::driver_store_folder::{StoreFolderError, SystemRoot, check_store_folder};
pub use read::host::{HcsSchema, HostBuild, HostFacts, Hypervisor, Platform, Wow64};
pub use read::node_software::{
    Containerd, HcsFailure, HcsFailureKind, NodeSoftware, NvidiaGpu, Nvml, Program, ProgramVersion,
};
pub use read::nvidia::{ComputeCapability, License, LicenseState, NvidiaFacts, UtcTime};
pub use read::replica_id::ReplicaId;
pub use read::source::{
    AdapterSource, AdapterWarning, ChangeCallback, HostSnapshot, ReadStep, SourceError,
    StepCallback, WarningEffect,
};
pub use read::telemetry::{ConstantLoad, EngineKind, EngineTelemetry, MemoryUse, Telemetry};
pub use select::destination::{Destination, DestinationError};
pub use select::device::{Device, Health, NoStoreFolder, StoreFolder, UnhealthyReason};
pub use select::kind::DeviceKind;
pub use select::model::{DriverModel, Vendor};
pub use select::not_advertised::{NotAdvertised, NotAdvertisedReason, Remedy};
pub use select::runtime_files::{CopyToVmValueError, RejectedValue, RuntimeFile, RuntimeFiles};
pub use select::selection::{Criteria, Filter, Selection, discover};
pub use set::device_set::{
    DeviceSet, ListedDevice, Moment, Replica, ReplicaError, ResourceDevices,
};
pub use text::error_chain::error_chain;
pub use text::file_values;
pub use text::parse::ParseError;
pub use text::paths::{FileName, PathError, StorePath, StorePattern};
pub use text::printable;
