//! A test double of `dxcore.dll` that simulates the adapters of an inventory under Wine.
//!
//! The library reads an inventory file and implements `DXCore`'s factory, lists and
//! adapters as Microsoft documents them (`dxcore_interface.h` on learn.microsoft.com),
//! with the documented error codes and notifications. It follows the file: when the file
//! changes, the simulated host changes. On other systems than Windows, the crate is empty.
//!
//! Nothing compares it with Windows. The tests under Wine show that the programs, which call it
//! through the `windows` crate, read from it what is in the inventory.
//!
//! The library also implements `HcsGetServiceProperties` of `vmcompute.dll`, which Wine
//! lacks, and functions of `nvml.dll`, so that a copy of it can replace each of these libraries.
//!
//! # Environment variables
//!
//! * `DXCORE_DOUBLE_INVENTORY`: the inventory file, otherwise `C:\inventory.yaml`.
//! * `DXCORE_DOUBLE_NEWER_ATTRIBUTES`: how the host treats the attributes that were added
//!   after D3D11, D3D12 and core compute: `listed` (the default) or `ignored` (an older
//!   host whose lists of them are empty).
//! * `DXCORE_DOUBLE_FAILING_LISTS`: a file with names of attributes, one a line. While it
//!   exists, requests for lists of them fail with `E_FAIL`.
//! * `DXCORE_DOUBLE_GONE`: comma-separated LUIDs. These adapters are listed but are no
//!   longer valid; as documented, their properties can still be read.
//! * `DXCORE_DOUBLE_FAILING`: comma-separated properties, such as `7048070:DriverVersion` with
//!   an adapter's LUID. Reading them fails with `DXGI_ERROR_DEVICE_REMOVED`.
//! * `DXCORE_DOUBLE_UPDATING`: comma-separated LUIDs. The drivers of these adapters are
//!   being updated (`IsDriverUpdateInProgress`).
//!
//! # The file `C:\nvml-fault.txt`
//!
//! Its text is the fault of NVIDIA's management library: `crashes`, `hangs`, `leaks` memory, `prints`
//! to standard output, `needs-flags` (`nvmlInit_v2` fails), or `loses-first-gpu`.

#![cfg(windows)]
#![allow(
    clippy::inline_always,
    clippy::ref_as_ptr,
    reason = "`#[implement]` of the windows crate generates such code"
)]

mod adapter;
mod attributes;
mod doubled_host;
mod factory;
mod interface;
mod list;
mod modes;
mod notify;
mod nvml;
mod property;
mod schemas;
mod services;
