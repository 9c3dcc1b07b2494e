//! DirectX adapters and the pure decisions about them.
//!
//! In come adapters as a source saw them and a policy; out go devices, the
//! reasons for what was left out, slots, and what a container is given. Nothing
//! here does I/O, reads a clock or the environment, or logs.

mod adapter;
mod host;
mod model;
mod paths;
mod policy;
mod source;
mod text;

pub use adapter::{
    Adapter, Attachment, Attribute, Attributes, CopyToVmKey, CopyToVmKind, CopyToVmValue,
    DriverKey, DriverStore, DriverVersion, HardwareId, LocationPath, Luid, Placement, PnpDevice,
    PnpId, Realness, StoreFiles,
};
pub use host::{HcsSchema, HostBuild, HostFacts, Wow64};
pub use model::{DriverModel, Vendor};
pub use paths::{FileName, PathError, StorePath};
pub use policy::{
    AdditionalMount, AdditionalMounts, AllocationPolicy, ContainerPolicy, DescriptionPattern,
    DeviceMatch, DeviceScope, Hints, LocationPattern, ModelPolicy, MultiDevice, NumaTopology,
    PciPattern, Policy, ResourceName, ResourceNameError, ResourceRule, RuntimeMounts, Sharing,
};
pub use source::{AdapterSource, AdapterWarning, ChangeCallback, HostSnapshot, Kept, SourceError};
