//! `doctor`: what is wrong with a node, and what to do about it.
//!
//! [`look`] gathers plain values from this machine or a recording, [`judge`] is a pure
//! function from them to verdicts, [`report`] prints those.

mod check;
mod image;
mod judge;
mod look;
mod observed;
mod problems;
mod report;
mod version;

use std::process::ExitCode;

use cli::Failure;

pub(crate) use image::ImageVersion;

use crate::flags::{Doctor, Logs, Output};
use crate::{logging, output};

/// The exit status where there is a problem. Warnings are none.
const PROBLEM: u8 = 1;

/// Runs the command.
pub(crate) fn run(logs: &Logs, arguments: &Doctor) -> Result<ExitCode, Failure> {
    logging::start(logs);
    let checks = judge::judge(&look::look(arguments)?);
    match arguments.output {
        Output::Text => cli::print(&report::text(&checks, report::Colour::of_stdout()))?,
        Output::Json => output::print_json(&report::Report::of(&checks))?,
    }
    let problems = report::Counts::of(&checks).problem;
    Ok(if problems > 0 { ExitCode::from(PROBLEM) } else { ExitCode::SUCCESS })
}
