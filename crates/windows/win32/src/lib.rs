//! The DirectX adapters of the Windows host that this program runs on.
//!
//! `HostSource` reads adapters from `DXCore` (on Windows Server 2019 from the graphics kernel,
//! D3DKMT), their devices from the `PnP` manager, driver folders from the graphics kernel and
//! runtime files from the registry, and returns [`host::HostSnapshot`]s. The public API contains
//! no type of the `windows` crate. All `unsafe` code of device discovery is in the `sys` module,
//! and `windows_report` interprets what Windows returns.
//!
//! On other systems than Windows, the crate contains only types and what does not need Windows.

#[cfg(windows)]
mod adapter_sets;
pub mod container_processes;
#[cfg(windows)]
mod containerd_state;
mod containers;
pub mod directory_access;
#[cfg(windows)]
mod error;
pub mod files;
pub mod hcs;
mod hcs_error;
#[cfg(windows)]
mod kernel_comparison;
#[cfg(windows)]
mod live;
mod needed_windows;
pub mod nvml;
#[cfg(windows)]
pub mod service;
#[cfg(windows)]
mod services;
#[cfg(windows)]
mod source;
#[cfg(windows)]
mod sys;
#[cfg(windows)]
mod telemetry;
pub mod threads;

#[cfg(windows)]
pub use kernel_comparison::adapters_only_in_kernel;
pub use needed_windows::NEEDED_WINDOWS;
#[cfg(windows)]
pub use services::service_command;
#[cfg(windows)]
pub use source::{HostSource, OpenError, constant_host_facts, host_facts};
#[cfg(windows)]
pub use telemetry::read_telemetry;
pub use windows_report::service_command::ServiceCommand;
