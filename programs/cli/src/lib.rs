//! Command-line behaviour that all programs share.
//!
//! Runs a program as a function: sets its exit status (0 success, 1 failure, 2 wrong
//! usage or configuration) and prints its error with causes and a hint. Also generates
//! shell completions and the Markdown reference from the definitions that parse the
//! arguments.

mod completions;
mod failure;
mod go_flags;
mod reference;
mod stdout;

pub use completions::{Completions, write_completions};
pub use failure::{Failure, run};
pub use go_flags::{with_boolean_values, with_double_dashes};
pub use reference::markdown;
pub use stdout::print;
