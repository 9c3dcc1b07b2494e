//! The visibility filter: a library that hides adapters from the process that loads it, and
//! what the launcher needs to put it into a process.
//!
//! It hooks the functions of `win32u` through which every Windows API lists and opens
//! adapters, and the function of `ntdll` that starts a process, so that child processes are
//! filtered too. It has no runtime and uses only `ntdll`: it is loaded before a program's
//! own libraries, and must not change how the program starts.
//!
//! This is a courtesy to programs that would use the wrong GPU, not isolation: a program
//! can call the kernel itself.

#![cfg_attr(not(test), no_std)]
// The library reads and writes code of other processes and of system libraries.
#![allow(unsafe_code)]
#![cfg_attr(
    not(all(windows, feature = "dll")),
    allow(dead_code, unused_imports, reason = "the launcher uses a part, and other systems less")
)]

mod allowed;
mod architecture;
mod code;
mod d3dkmt;
mod exports;
mod filter_file;
mod imports;
mod not_filtered;
mod payload;

#[cfg(windows)]
mod memory;
#[cfg(windows)]
mod nt;
#[cfg(windows)]
mod process_image;

#[cfg(all(windows, feature = "dll"))]
mod adapters;
#[cfg(all(windows, feature = "dll"))]
mod children;
#[cfg(all(windows, feature = "dll"))]
mod entry;
#[cfg(all(windows, feature = "dll"))]
mod hook;
#[cfg(all(windows, feature = "dll"))]
mod report;
#[cfg(all(windows, feature = "dll"))]
mod state;

pub use allowed::AllowedLuids;
pub use architecture::Architecture;
pub use d3dkmt::is_visible;
pub use exports::export_32;
pub use filter_file::is_filter;
pub use imports::{Directory, HEADERS_SIZE, Image};
pub use not_filtered::NotFiltered;
pub use payload::{Payload, REQUIRED, VERBOSE};
#[cfg(all(windows, not(feature = "dll")))]
pub use process_image::resume;
#[cfg(windows)]
pub use process_image::{environment_block_32, filter};
