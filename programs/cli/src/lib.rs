//! What every program does at its command line, whatever its work is.
//!
//! In comes a program as a function; out go its exit status (0 success, 1 failure at
//! work, 2 wrong usage or configuration), its error as text with causes and advice,
//! shell completions, and its reference in Markdown from the same definitions that
//! parse its arguments.

mod completions;
mod error_chain;
mod failure;
mod host;
mod output;
mod reference;
mod stdout;

pub use completions::{Completions, write_completions};
pub use error_chain::error_chain;
pub use failure::{Failure, run};
pub use host::{list_store_files, open_host, read_host, read_inventory};
pub use output::{OutputFormat, print_json};
pub use reference::markdown;
pub use stdout::print;
