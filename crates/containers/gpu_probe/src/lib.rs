//! `gpu-probe`: tests every GPU API in a container, verifies the results on the CPU, and reports
//! what works, what does not and why.
//!
//! Each API runs in a separate process with a time limit, so that a hanging driver or a crashing
//! library does not affect the other tests. `directx-visible --check` lists adapters with the same
//! code, in such processes.

/// A section of the page about findings.
macro_rules! page {
    ($section:literal) => {
        concat!(env!("PAGES"), "docs/doctor.md#", $section)
    };
}

mod advice;
mod agreement;
pub mod allocation;
mod api;
mod apis;
mod arguments;
pub mod child;
pub mod failure;
mod file_version;
mod help;
mod library;
pub mod lists;
mod outcome;
mod report;
mod session;
mod test;
mod verdict;
mod visibility;
mod workload;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

pub use api::Api;
pub use help::reference;

use crate::arguments::{Arguments, Request};
use crate::failure::{Failure, print};
use crate::report::Report;

/// Runs the program with this process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    run().unwrap_or_else(|failure| {
        // Without standard error, only the exit code reports it.
        let _ = writeln!(io::stderr(), "{failure}");
        ExitCode::from(failure.code)
    })
}

fn run() -> Result<ExitCode, Failure> {
    match arguments::parse(std::env::args_os().skip(1))? {
        Request::Help => print(&help::text())?,
        Request::Version => print(&format!("gpu-probe {}\n", devices::VERSION))?,
        Request::Work(api) => print(&child::result(&test::outcome(api)))?,
        Request::Test(arguments) => return test(&arguments),
    }
    Ok(ExitCode::SUCCESS)
}

fn test(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let tests: Vec<_> = arguments
        .selected()
        .into_iter()
        .map(|api| {
            let start = Instant::now();
            let outcome = child::run(api, arguments.time_limit);
            report::Test { api, outcome, time: start.elapsed() }
        })
        .collect();
    let report = Report::new(&tests, arguments.demands(), arguments.expected.as_ref());
    print(&if arguments.json { report.json() } else { report.text() })?;
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
