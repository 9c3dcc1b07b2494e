//! `gpu-probe`: uses every GPU API of a container for a moment, verifies the results on the CPU
//! and reports what works, what does not and why.
//!
//! Input: the arguments, and the GPU libraries that this system has. Output: a report as text or
//! JSON, and an exit status. Each API runs in a process of its own with a time limit, so that a
//! hanging driver or a crashing library costs one line of the report.

mod advice;
mod api;
mod apis;
mod arguments;
mod child;
mod library;
mod measure;
mod outcome;
mod report;
mod session;
mod verdict;
mod visibility;
mod workload;

use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory as _, FromArgMatches as _};
use cli::Failure;

use crate::arguments::Arguments;
use crate::report::Report;

/// Runs the program with this process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    cli::run(|| run(&arguments()))
}

/// The definition that parses the arguments, for the reference page.
#[must_use]
pub fn command() -> clap::Command {
    Arguments::command()
}

fn arguments() -> Arguments {
    let matches = Arguments::command().color(cli::color_choice()).get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(shell) = arguments.completions.shell {
        cli::write_completions(shell, Arguments::command())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(api) = arguments.child {
        child::work(api, &arguments.work())?;
        return Ok(ExitCode::SUCCESS);
    }
    let selected = arguments.selected()?;
    let expected = arguments.expected()?;
    let tests: Vec<_> = selected
        .into_iter()
        .map(|api| {
            let start = Instant::now();
            let outcome = child::run(api, arguments);
            report::Test { api, outcome, time: start.elapsed() }
        })
        .collect();
    let report = Report::new(&tests, arguments.demands(), expected.as_ref());
    report.print(arguments.output)?;
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
