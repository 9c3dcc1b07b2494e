//! The DirectX adapters of the Windows host this runs on.
//!
//! `HostSource` asks `DXCore` for adapters, the `PnP` manager for their devices, the
//! graphics kernel for driver folders and the registry for runtime files; out come
//! [`devices::HostSnapshot`]s. No type of the `windows` crate leaves this crate, and
//! all `unsafe` of device discovery is in its `sys` module. What is decided about the
//! answers of Windows is in plain modules that are tested on any OS.
//!
//! Elsewhere than on Windows only what needs no Windows is here.

#[cfg(any(windows, test))]
mod assembly;
#[cfg(any(windows, test))]
mod copy_to_vm;
mod driver_date;
#[cfg(any(windows, test))]
mod failure;
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
#[cfg(windows)]
mod source;
#[cfg(any(windows, test))]
mod store_path;
#[cfg(windows)]
mod sys;
#[cfg(any(windows, test))]
mod text;

pub use driver_date::DriverDate;
#[cfg(windows)]
pub use driver_date::driver_dates;
#[cfg(windows)]
pub use services::service_command;
#[cfg(windows)]
pub use source::{HostSource, OpenError, host_facts};

/// Which Windows a live host needs, and why, for error messages and the `doctor`.
pub const NEEDED_WINDOWS: &str = "DirectX adapters are listed by dxcore.dll, which comes with Windows Server 2022, \
     Windows 10 version 2004 and newer; Windows Server 2019 and Nano Server do not have it";
