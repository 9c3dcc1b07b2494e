//! The DirectX adapters of the Windows host that this program runs on.
//!
//! `HostSource` reads adapters from `DXCore`, their devices from the `PnP` manager, driver
//! folders from the graphics kernel and runtime files from the registry, and returns
//! [`devices::HostSnapshot`]s. The public API contains no type of the `windows` crate. All
//! `unsafe` code of device discovery is in the `sys` module. The code that interprets the
//! results of Windows is in separate modules, which are tested on any operating system.
//!
//! On other systems than Windows, the crate contains only what does not need Windows.

#[cfg(any(windows, test))]
mod assembly;
#[cfg(any(windows, test))]
mod copy_to_vm;
#[cfg(any(windows, test))]
mod error;
pub mod files;
pub mod hcs;
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
mod services;
#[cfg(any(windows, test))]
mod single_query;
#[cfg(windows)]
mod source;
#[cfg(any(windows, test))]
mod steps;
#[cfg(any(windows, test))]
mod store_path;
#[cfg(windows)]
mod sys;
#[cfg(any(windows, test))]
mod text;

#[cfg(windows)]
pub use services::service_command;
#[cfg(windows)]
pub use source::{HostSource, OpenError, constant_host_facts, host_facts};

/// Which Windows versions a live host needs, and why, for error messages and `doctor`.
pub const NEEDED_WINDOWS: &str = "DirectX adapters are listed by dxcore.dll, which comes with Windows Server 2022, \
     Windows 10 version 2004 and newer; Windows Server 2019 and Nano Server do not have it";
