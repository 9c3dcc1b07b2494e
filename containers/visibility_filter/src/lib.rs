//! The visibility filter: a library that hides adapters from the process that loads it.
//!
//! It hooks the functions of `win32u` through which every Windows API lists and opens
//! adapters, and the function of `ntdll` that starts a process, so that child processes are
//! filtered too. It has no runtime and uses only `ntdll`: it is loaded before a program's
//! own libraries, and must not change how the program starts.
//!
//! This is a courtesy to programs that would use the wrong GPU, not isolation: a program
//! can call the kernel itself.

#![cfg_attr(not(test), no_std)]
// Code of other processes and of system libraries is read and written.
#![cfg_attr(all(windows, any(target_arch = "x86_64", target_arch = "x86")), allow(unsafe_code))]

#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86")))]
mod memory;
#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86")))]
mod nt;
#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86")))]
mod process_image;

#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86"), feature = "dll"))]
mod adapters;
#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86"), feature = "dll"))]
mod children;
#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86"), feature = "dll"))]
mod code;
#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86"), feature = "dll"))]
mod entry;
#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86"), feature = "dll"))]
mod hook;
#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86"), feature = "dll"))]
mod report;
#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86"), feature = "dll"))]
mod state;

#[cfg(all(windows, any(target_arch = "x86_64", target_arch = "x86")))]
pub use process_image::{NotFiltered, environment_block_32, filter};
