//! The doctor: finds what is wrong with a node, and says how to fix it.
//!
//! In comes a [`Request`]; out go a report on standard output and an exit status.
//! `collect` gathers plain values from this machine or an inventory, `evaluate` is a
//! pure function from those values to checks, and `report` prints the checks.

mod check;
mod collect;
mod evaluate;
mod facts;
mod image;
mod problem_codes;
mod report;
mod request;

use std::process::ExitCode;

use cli::{Color, Failure, OutputFormat};
use devices::{HostFacts, HostSnapshot, NodeSoftware};

pub use check::{Check, Subject, Verdict};
#[cfg(windows)]
pub use collect::node_software;
pub use image::{ImageVersion, ImageVersionError};
pub use request::Request;

/// The exit status if there is a problem. Warnings do not count.
const PROBLEM: u8 = 1;

/// What was found out about a node.
pub struct Inspection {
    /// Facts of the host.
    pub host: HostFacts,
    /// The software of the node.
    pub software: NodeSoftware,
    /// The adapters, if they could be read.
    pub adapters: Option<HostSnapshot>,
    /// Every check, in the order of [`Subject`].
    pub checks: Vec<Check>,
}

/// Checks a node.
///
/// # Errors
/// The inventory cannot be read, or there is none and this host is not Windows.
pub fn inspect(request: &Request) -> Result<Inspection, Failure> {
    let facts = collect::collect(request)?;
    let checks = evaluate::evaluate(&facts);
    let machine = facts.machine;
    let adapters = machine.adapters.ok();
    Ok(Inspection { host: machine.host, software: machine.software, adapters, checks })
}

/// Checks a node and prints the report. The exit status is 1 if there is a problem.
///
/// # Errors
/// The inventory cannot be read, there is none and this host is not Windows, or standard
/// output cannot be written.
pub fn run(request: &Request, format: OutputFormat) -> Result<ExitCode, Failure> {
    let checks = inspect(request)?.checks;
    match format {
        OutputFormat::Text => cli::print(&report::text(&checks, Color::of_stdout()))?,
        OutputFormat::Json => cli::print_json(&report::Report::of(&checks))?,
    }
    let problems = report::Counts::of(&checks).problem;
    Ok(if problems > 0 { ExitCode::from(PROBLEM) } else { ExitCode::SUCCESS })
}
