//! DirectX adapters, and the decisions about them as pure functions.
//!
//! From the adapters that a source reports and a policy, this crate computes the devices, the
//! reason for each skipped adapter, the replicas, and what a container gets. It does no I/O, reads
//! no clock or environment variables, and does not log.

mod adapter;
mod allocated_drivers;
mod case_folding;
mod container_contents;
mod copy_to_vm;
mod cordon;
mod destination;
mod device;
mod device_class;
mod device_set;
mod driver_date;
mod driver_store_folder;
mod dxg;
mod environment_hints;
mod error_chain;
mod host;
mod launcher;
mod model;
mod mounts;
pub mod node_report;
mod node_software;
mod offer;
mod parse;
mod paths;
mod pattern;
mod plan;
mod policy;
mod preferred_allocation;
pub mod printable;
mod replica;
mod resets;
mod resource_name;
mod runtime_files;
mod selection;
mod source;
mod telemetry;
mod text_newtype;

pub use adapter::{
    Adapter, Attribute, Attributes, DriverKey, DriverStore, DriverVersion, HardwareId,
    LocationPath, Luid, PnpDevice, PnpId, StoreFiles,
};
pub use allocated_drivers::{AllocatedDrivers, OutdatedReplica, is_driver_replaced};
pub use container_contents::{ContainerContents, PlanWarning};
pub use copy_to_vm::{CopyToVmKey, CopyToVmKind, CopyToVmValue};
pub use cordon::{CORDON_ANNOTATION, Cordon, CordonSource, DeviceName};
pub use destination::{Destination, DestinationError};
pub use device::{Device, Health, NoStoreFolder, StoreFolder, UnhealthyReason};
pub use device_class::DeviceClass;
pub use device_set::{DeviceSet, ListedDevice, Moment, Replica, ReplicaError, ResourceDevices};
pub use driver_date::DriverDate;
pub use driver_store_folder::{StoreFolderError, SystemRoot, check_store_folder};
pub use dxg::{DXG_CDI_DEVICE, DXG_DEVICE, DXG_FOLDERS, DXG_LIBRARY_PATH, dxg_driver_folder};
pub use environment_hints::visible_devices_variable;
pub use error_chain::error_chain;
pub use host::{HcsSchema, HostBuild, HostFacts, Platform, Wow64};
pub use launcher::{LAUNCHER_FILES, LauncherProblem, launcher_root};
pub use model::{DriverModel, Vendor};
pub use mounts::{
    FIRST_BUILD_WITHOUT_MOUNTS, FileDecision, MountCandidate, MountOrigin, MountOutcome, MountPlan,
    NOT_APPLIED_HINT, NoMountsReason,
};
pub use node_software::{
    Containerd, HcsFailure, HcsFailureKind, NodeSoftware, NvidiaGpu, Nvml, Program, ProgramVersion,
};
pub use offer::{Catalog, Offer, ResourceOffer, ResourceOrigin, ResourceSpec};
pub use parse::ParseError;
pub use paths::{FileName, PathError, StorePath};
pub use pattern::{DescriptionPattern, LocationPattern, PciPattern};
pub use plan::{
    DeviceGrant, LOCATION_PATH_SCHEMA, Plan, PlanError, contents, plan, takes_location_paths,
};
pub use policy::{
    AdditionalMounts, AllocationPolicy, ContainerPolicy, DeviceMatch, ModelPolicy, MultiDevice,
    Policy, ResourceRule, RuntimeMounts, SharedRequests, Sharing, Visibility,
};
pub use preferred_allocation::preferred_allocation;
pub use replica::{HeldDevices, ReplicaId};
pub use resets::{DeviceResets, MAX_RESET_MINUTES, ResetHistory, ResetLimit};
pub use resource_name::{ResourceName, ResourceNameError};
pub use runtime_files::{CopyToVmValueError, RejectedValue, RuntimeFile, RuntimeFiles};
pub use selection::{Criteria, Filter, Selection, SkipReason, Skipped, discover};
pub use source::{
    AdapterSource, AdapterWarning, ChangeCallback, HostSnapshot, ReadStep, SourceError,
    StepCallback, WarningEffect,
};
pub use telemetry::{EngineKind, EngineTelemetry, MemoryUse, Telemetry};
