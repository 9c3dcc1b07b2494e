//! Command-line behavior that all programs share.

mod chosen_host;
mod completions;
pub mod configuration;
pub mod device_summary;
mod disk;
mod failure;
pub mod file_poll;
pub mod frontends;
mod go_flags;
mod host_error;
mod inventory_source;
mod launcher_files;
mod live_read;
pub mod options;
mod output;
mod stderr;
mod usage_advice;
pub mod verdict;

pub use chosen_host::{
    add_not_listed, add_nvidia, list_store_files, open_host, read_host, read_inventory,
};
pub use completions::{parse, parse_from, with_completions, write_completions};
pub use disk::disk;
pub use failure::{Failure, run};
pub use go_flags::{with_boolean_values, with_double_dashes};
pub use host::error_chain;
pub use host_error::{HostError, NoAnswer};
pub use inventory_source::InventorySource;
pub use launcher_files::{launcher_sources, missing_launcher_files};
pub use live_read::{OnStep, read_live};
pub use output::{OutputFormat, print, print_json};
