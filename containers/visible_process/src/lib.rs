//! Starts a program with the visibility filter, and waits for it.
//!
//! Input: a raw command line and the payload. Output: the exit code of the program. Also
//! reads what the launcher needs to know: its own raw command line, and whether the filter
//! can be loaded.

// The functions of Windows are unsafe to call.
#![cfg_attr(windows, allow(unsafe_code))]

#[cfg(windows)]
mod console;
#[cfg(windows)]
mod control_routine;
#[cfg(windows)]
mod filter_file;
#[cfg(windows)]
mod handle;
#[cfg(windows)]
mod launch;

#[cfg(windows)]
pub use console::raw_command_line;
#[cfg(windows)]
pub use filter_file::{check_32_bit as check_32_bit_filter, load as load_filter, system_folder};
#[cfg(windows)]
pub use launch::{Child, LaunchError, Output, launch};
#[cfg(windows)]
pub use visibility_filter::NotFiltered;
