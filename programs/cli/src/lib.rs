//! Command-line behaviour that all programs share.
//!
//! Runs a program as a function: sets its exit status (0 success, 1 failure, 2 wrong
//! usage or configuration) and prints its error with causes and a hint. Also opens this
//! host or an inventory, prints JSON, writes files, decides on colors, and generates shell
//! completions and the Markdown reference from the definitions that parse the arguments.

mod color;
mod completions;
mod error_chain;
mod failure;
mod go_flags;
mod host;
mod output;
mod output_file;
mod reference;
mod stderr;
mod stdout;

pub use color::{Color, color_choice};
pub use completions::{Completions, write_completions};
pub use error_chain::error_chain;
pub use failure::{Failure, run};
pub use go_flags::{with_boolean_values, with_double_dashes};
pub use host::{list_store_files, open_host, read_host, read_inventory};
pub use output::{OutputFormat, print_json};
pub use output_file::write_file;
pub use reference::markdown;
pub use stdout::print;
