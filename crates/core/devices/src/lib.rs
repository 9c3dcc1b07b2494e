//! The decisions about DirectX devices, as pure functions.
//!
//! From the adapters that a source reports and a policy, this crate computes the devices, the
//! reason for each adapter that is not advertised, the replicas, and what a container gets. Its
//! modules stand along the data flow: `policy`, `select`, `offer`, `set`, `plan`. Each uses only
//! those before it. The crate does no I/O, reads no clock or environment variables, and does
//! not log.

/// The version that programs, logs and metrics name. In a build of the main branch, `cargo
/// xtask` adds the commit, with this variable.
pub const VERSION: &str = match option_env!("DIRECTX_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

mod offer;
mod plan;
mod policy;
mod select;
mod set;

pub use offer::{Catalog, Offer, ResourceOffer, ResourceOrigin, ResourceSpec};
pub use plan::container_contents::{ContainerContents, PlanWarning};
pub use plan::environment_hints::visible_devices_variable;
pub use plan::launcher::{LAUNCHER_FILES, LauncherProblem, launcher_root};
pub use plan::mounts::{
    FIRST_BUILD_WITHOUT_MOUNTS, FileDecision, LeftOut, MountCandidate, MountOrigin, MountOutcome,
    MountPlan, NOT_APPLIED_HINT, NoMountsReason,
};
pub use plan::preferred_allocation::preferred_allocation;
pub use plan::source_patterns::{Disk, NoSingleMatch};
pub use plan::{
    DeviceGrant, Plan, PlanError, SingleDevice, contents, plan, plan_on_disk, single_device,
};
pub use policy::destination::{Destination, DestinationError};
pub use policy::device_class::DeviceClass;
pub use policy::driver_model::DriverModel;
pub use policy::pattern::{DescriptionPattern, LocationPattern, PciPattern};
pub use policy::resource_name::{ResourceName, ResourceNameError};
pub use policy::{
    AdditionalMount, AdditionalMounts, AllocationPolicy, ContainerPolicy, DeviceMatch, ModelPolicy,
    MultiDevice, Policy, ResourceRule, RuntimeMounts, SharedRequests, Sharing, Visibility,
};
pub use select::device::{Device, Health, NoStoreFolder, StoreFolder, UnhealthyReason};
pub use select::filter::Filter;
pub use select::not_advertised::{NotAdvertised, NotAdvertisedReason, Remedy};
pub use select::runtime_files::{CopyToVmValueError, RejectedValue, RuntimeFile, RuntimeFiles};
pub use select::selection::{Criteria, Selection, discover};
pub use set::device_set::{
    DeviceSet, ListedDevice, Moment, Replica, ReplicaError, ResourceDevices,
};
