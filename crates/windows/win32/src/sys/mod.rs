//! Safe wrappers around the functions of Windows. `Drop` closes handles. Libraries that some
//! Windows versions lack are loaded at run time, only from System32.

pub(crate) mod dxcore;
pub(crate) mod hcs;
pub(crate) mod hypervisor;
pub(crate) mod job;
pub(crate) mod kmt;
pub(crate) mod kmt_adapters;
pub(crate) mod kmt_statistics;
pub(crate) mod library;
pub(crate) mod notify;
pub(crate) mod nvml;
pub(crate) mod registry;
pub(crate) mod security;
pub(crate) mod setup;
pub(crate) mod version;
