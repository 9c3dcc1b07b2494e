//! What a host is: its adapters, its devices and its software, as a source reports them, without any
//! decision.
//!
//! A live host and an inventory report the same types. The crate does no I/O, reads no clock or
//! environment variables, and does not log.

mod adapter;
mod copy_to_vm;
mod cordon;
mod driver_date;
mod driver_store_folder;
mod facts;
mod ids;
mod kind;
mod launcher_files;
mod node_software;
mod nvidia;
mod replica_id;
mod source;
mod telemetry;
mod text;
mod vendor;

pub use adapter::{
    Adapter, Attribute, Attributes, DriverStore, DriverVersion, HardwareId, PnpDevice, StoreFiles,
};
pub use copy_to_vm::{CopyToVmKey, CopyToVmKind, CopyToVmValue};
pub use cordon::{CORDON_ANNOTATION, Cordon, CordonSource, Cordons, DeviceName};
pub use driver_date::DriverDate;
pub use driver_store_folder::{StoreFolderError, SystemRoot, check_store_folder};
pub use facts::{HcsSchema, HostBuild, HostFacts, Hypervisor, Platform, Wow64};
pub use ids::{DriverKey, LocationPath, Luid, PnpId};
pub use kind::DeviceKind;
pub use launcher_files::LauncherFiles;
pub use node_software::{
    Containerd, HcsFailure, HcsFailureKind, NodeSoftware, NvidiaGpu, Nvml, Program, ProgramVersion,
};
pub use nvidia::{ComputeCapability, License, LicenseState, NvidiaFacts, UtcTime};
pub use replica_id::ReplicaId;
pub use source::{
    AdapterSource, AdapterWarning, ChangeCallback, HostSnapshot, ReadStep, SourceError,
    StepCallback, WarningEffect,
};
pub use telemetry::{ConstantLoad, EngineKind, EngineTelemetry, MemoryUse, Telemetry};
pub use text::case_folding::fold_case;
pub use text::error_chain::error_chain;
pub use text::file_values;
pub use text::parse::ParseError;
pub use text::paths::{FileName, PathError, StorePath, StorePattern, name_matches};
pub use text::printable;
pub use vendor::Vendor;
