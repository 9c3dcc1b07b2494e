//! DirectX adapters and the pure decisions about them.
//!
//! In come adapters as a source saw them and a policy; out go devices, the
//! reasons for what was left out, slots, and what a container is given. Nothing
//! here does I/O, reads a clock or the environment, or logs.

mod adapter;
mod copy_to_vm;
mod device;
mod device_set;
mod hints;
mod host;
mod model;
mod mounts;
mod offer;
mod paths;
mod pattern;
mod plan;
mod policy;
mod prefer;
mod resource_name;
mod runtime_files;
mod selection;
mod slot;
mod source;
mod text;

pub use adapter::{
    Adapter, Attachment, Attribute, Attributes, DriverKey, DriverStore, DriverVersion,
    DriverVersionError, HardwareId, LocationPath, Luid, Placement, PnpDevice, PnpId, Realness,
    StoreFiles,
};
pub use copy_to_vm::{CopyToVmKey, CopyToVmKeyError, CopyToVmKind, CopyToVmValue};
pub use device::{Ailment, Device, Health, StoreFolder, Support};
pub use device_set::{DeviceSet, Entry, Moment, ResourceDevices, Slot, SlotFault};
pub use host::{HcsSchema, HcsSchemaError, HostBuild, HostBuildError, HostFacts, Wow64};
pub use model::{DriverModel, DriverModelError, Vendor, VendorError};
pub use mounts::{
    FIRST_BUILD_WITHOUT_MOUNTS, Fate, FileFate, MountCandidate, MountOrigin, MountPlan, NoMounts,
};
pub use offer::{Catalog, Offer, ResourceOffer, ResourceOrigin, ResourceSpec};
pub use paths::{FileName, PathError, StorePath};
pub use pattern::{
    DescriptionPattern, DescriptionPatternError, LocationPattern, LocationPatternError, PciPattern,
    PciPatternError,
};
pub use plan::{
    DISPLAY_ADAPTER_CLASS, DeviceGrant, LOCATION_PATH_SCHEMA, Plan, PlanError, PlanWarning, plan,
    takes_location_paths,
};
pub use policy::{
    AdditionalMount, AdditionalMounts, AllocationPolicy, ContainerPolicy, DeviceMatch, DeviceScope,
    Hints, ModelPolicy, MultiDevice, NumaTopology, Policy, ResourceRule, RuntimeMounts, Sharing,
};
pub use prefer::{PreferError, prefer};
pub use resource_name::{ResourceName, ResourceNameError};
pub use runtime_files::{RejectedValue, RuntimeFile, RuntimeFiles, ValueFault, Visibility};
pub use selection::{
    Abilities, Criteria, Filter, FilterError, ModelList, Selection, SkipReason, Skipped, discover,
};
pub use slot::{SlotId, SlotIdError};
pub use source::{AdapterSource, AdapterWarning, ChangeCallback, HostSnapshot, Kept, SourceError};
