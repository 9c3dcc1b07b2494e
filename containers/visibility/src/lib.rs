//! The decisions of the visibility filter, which lets a process see only the adapters of
//! its container.
//!
//! Input: the variables of the container or the allowed LUIDs, and bytes of the process. Output: which adapters stay
//! visible, and the bytes that hook a function or add a library to a program's imports.
//! Nothing here uses the standard library, because the filter has no runtime.

#![cfg_attr(not(test), no_std)]

mod adapters;
mod allowed;
mod architecture;
mod exports;
mod filter_file;
mod imports;
mod kernel_calls;
mod payload;
mod stub;
mod stub_x86;
mod tables;
mod variables;

pub use adapters::{AdapterInfo, AdapterType, is_visible, keep_visible};
pub use allowed::{AllowedLuids, TooManyLuids};
pub use architecture::Architecture;
pub use exports::{Export, export_32};
pub use filter_file::is_filter;
pub use imports::{
    Block, Directory, HEADERS_SIZE, Image, MAX_IMPORTS_SIZE, Refusal, imports_length,
};
pub use kernel_calls::{
    ADAPTER_TYPE, EnumAdapters, EnumAdapters2, EnumAdapters3, OpenFromLuid, QueryAdapterInfo,
};
pub use payload::{MAX_PATH_LENGTH, Payload, PayloadError, Unfiltered};
pub use stub::{CODE_SIZE, Stub, TRAMPOLINE_SIZE, far_jump, near_jump};
pub use stub_x86::{TRAMPOLINE_SIZE_X86, near_jump_x86};
pub use tables::{export_slot, import_slots};
pub use variables::{AllocationError, VARIABLE, allocated};
