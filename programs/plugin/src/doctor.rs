//! Finds what is wrong with a node, and says how to fix it.
//!
//! [`look`] changes nothing: `collect` gathers plain values from this machine or an inventory,
//! and `evaluate` is a pure function from those values to findings. [`attempt()`] also tries what
//! the daemon needs, step by step; each step has a time limit, and removes what it created, also
//! after an interruption.

mod attempt;
mod collect;
mod evaluate;
mod facts;
mod finding;
mod image;
mod problem_codes;
mod process;
mod report;
mod request;
mod stop;

use node::cli::Failure;

pub(crate) use attempt::attempt;
#[cfg(windows)]
pub(crate) use collect::node_software;
pub(crate) use image::ImageVersion;
pub(crate) use report::{OutputFormat, Report};
pub(crate) use request::{ContainerRequest, Request, Step};

/// Looks at a node.
///
/// # Errors
/// The inventory cannot be read, or there is none and this host is not Windows.
pub(crate) fn look(request: &Request) -> Result<Report, Failure> {
    let facts = collect::collect(request)?;
    Ok(Report::new(Some(&facts.machine), None, evaluate::evaluate(&facts)))
}
