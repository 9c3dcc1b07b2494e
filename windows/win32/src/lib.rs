//! The DirectX adapters of the Windows host that this program runs on.
//!
//! `HostSource` reads adapters from `DXCore` (on Windows Server 2019 from the graphics kernel,
//! D3DKMT), their devices from the `PnP` manager, driver folders from the graphics kernel and
//! runtime files from the registry, and returns [`devices::HostSnapshot`]s. The public API contains no type of the `windows` crate. All
//! `unsafe` code of device discovery is in the `sys` module. The code that interprets the
//! results of Windows is in separate modules, which are tested on any operating system.
//!
//! On other systems than Windows, the crate contains only what does not need Windows. The crate `dxg`
//! uses it to interpret what a Windows host reports to Linux.

#[cfg(windows)]
mod adapter_sets;
#[cfg(any(windows, test))]
mod assembly;
mod container_name;
pub mod container_processes;
#[cfg(any(windows, test))]
mod containers;
#[cfg(any(windows, test))]
mod copy_to_vm;
pub mod directory_access;
#[cfg(windows)]
mod error;
pub mod files;
pub mod hcs;
pub mod kernel_report;
#[cfg(windows)]
mod live;
#[cfg(any(windows, test))]
pub mod nvml;
#[cfg(any(windows, test))]
mod order;
#[cfg(any(windows, test))]
mod product;
#[cfg(any(windows, test))]
mod property;
#[cfg(windows)]
pub mod service;
#[cfg(windows)]
mod services;
#[cfg(windows)]
mod source;
pub mod store_path;
#[cfg(windows)]
mod sys;
#[cfg(any(windows, test))]
mod telemetry;
pub mod text;

#[cfg(windows)]
pub use services::service_command;
#[cfg(windows)]
pub use source::{HostSource, OpenError, constant_host_facts, host_facts};
#[cfg(windows)]
pub use telemetry::read_telemetry;

/// Which Windows versions a live host needs, and why, for error messages and `doctor`.
pub const NEEDED_WINDOWS: &str = "Windows Server 2019, Windows 10 version 1809 or newer is needed; Nano Server cannot list DirectX \
     adapters";
