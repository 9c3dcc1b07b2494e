//! Tests of the Windows programs under Wine, which `testing/wine/wine` finds or installs.
//!
//! The registry, `SetupAPI` and files are Wine's. `dxcore_double` provides the adapters of an
//! inventory, and `wine_bed` makes its devices, driver keys and driver files. Most tests compare
//! what a Windows program prints with what the same program prints on this machine for the same
//! inventory.
//!
//! The programs are those of debug builds in the target folder:
//!
//! ```console
//! cargo build -p plugin -p tools -p gpu_probe -p directx_visible
//! cargo build --target x86_64-pc-windows-gnu -p plugin -p tools -p gpu_probe -p discovery_dll \
//!     -p directx_visible -p dxcore_double -p wine_bed
//! cargo build --target i686-pc-windows-gnu -p wine_bed
//! cargo xtask visibility-filter
//! cargo test -p wine_suite -- --ignored
//! ```
//!
//! The tests of `clients`, `device_manager`, `visible_images` and `visible_parents` also build with
//! Go, and those of `clients` with MinGW-w64's C++ compiler. The tests of `graphics` and
//! `third_party` use two software GPUs; the latter also need the programs of `cargo xtask setup`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails with a panic")]

mod clients;
mod compare;
mod daemon;
mod device_manager;
mod doctor;
mod gpu_probe;
mod graphics;
mod host;
mod host_variants;
mod inventories;
mod launcher_files;
mod output;
mod paths;
mod service;
mod third_party;
mod tools;
mod visible;
mod visible_exits;
mod visible_images;
mod visible_parents;
