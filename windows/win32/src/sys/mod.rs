//! The calls to Windows, each behind a safe wrapper. Handles are closed by `Drop`;
//! libraries that some Windows lacks are loaded at run time, from System32 alone.

pub(crate) mod dxcore;
pub(crate) mod hcs;
pub(crate) mod kmt;
pub(crate) mod library;
pub(crate) mod notify;
pub(crate) mod nvml;
pub(crate) mod registry;
pub(crate) mod setup;
pub(crate) mod version;
