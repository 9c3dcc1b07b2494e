//! A `dxcore.dll` that plays the adapters of an inventory, for runs under Wine.
//!
//! In comes an inventory file; out go `DXCore`'s factory, lists and adapters as
//! Microsoft documents them (`dxcore_interface.h` on learn.microsoft.com), with
//! the documented error codes and the documented notifications. The file is
//! followed: what it says is what the host has from that moment on. On systems
//! other than Windows the crate is empty but for its tests.
//!
//! The library also has what Wine lacks of two others, so that a copy of it can stand
//! in for them: `HcsGetServiceProperties` (as `computecore.dll`, or with another
//! signature as `vmcompute.dll`) and `BrandingFormatString` (as `winbrand.dll`).
//!
//! # The environment
//!
//! * `DXCORE_DOUBLE_INVENTORY`: the inventory file. Without it the factory is refused.
//! * `DXCORE_DOUBLE_NEWER_ATTRIBUTES`: what becomes of the attributes that came
//!   after D3D11, D3D12 and core compute: `listed` (the default), `ignored` (an older
//!   host whose lists of them are empty) or `refused` (one that answers `E_INVALIDARG`).
//! * `DXCORE_DOUBLE_GONE`: LUIDs with commas between. These adapters are listed and
//!   then no longer valid; as documented, their properties still answer.
//! * `DXCORE_DOUBLE_FAILING`: LUIDs with commas between. Every other property of these
//!   fails with `DXGI_ERROR_DEVICE_REMOVED`.
//! * `DXCORE_DOUBLE_UPDATING`: LUIDs with commas between. The drivers of these are being
//!   replaced (`IsDriverUpdateInProgress`).

#![cfg_attr(
    windows,
    allow(
        clippy::inline_always,
        clippy::ref_as_ptr,
        reason = "`#[implement]` of the windows crate writes such code"
    )
)]

#[cfg(any(windows, test))]
mod modes;
#[cfg(any(windows, test))]
mod property;
#[cfg(any(windows, test))]
mod schemas;

#[cfg(windows)]
mod adapter;
#[cfg(windows)]
mod attributes;
#[cfg(windows)]
mod factory;
#[cfg(windows)]
mod host;
#[cfg(windows)]
mod list;
#[cfg(windows)]
mod notify;
#[cfg(windows)]
mod services;
