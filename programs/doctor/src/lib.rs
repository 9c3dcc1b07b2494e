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

#[cfg(windows)]
pub use collect::node_software;
pub use image::{ImageVersion, ImageVersionError};
pub use request::Request;

/// The exit status if there is a problem. Warnings do not count.
const PROBLEM: u8 = 1;

/// Checks a node and prints the report. The exit status is 1 if there is a problem.
///
/// # Errors
/// The inventory cannot be read, there is none and this host is not Windows, or standard
/// output cannot be written.
pub fn run(request: &Request, format: OutputFormat) -> Result<ExitCode, Failure> {
    let checks = evaluate::evaluate(&collect::collect(request)?);
    match format {
        OutputFormat::Text => cli::print(&report::text(&checks, Color::of_stdout()))?,
        OutputFormat::Json => cli::print_json(&report::Report::of(&checks))?,
    }
    let problems = report::Counts::of(&checks).problem;
    Ok(if problems > 0 { ExitCode::from(PROBLEM) } else { ExitCode::SUCCESS })
}
