//! The report of a verification.

mod contents;
mod json;
mod markdown;
mod node;
mod text;

use std::process::ExitCode;

use clap::ValueEnum;
use cli::Failure;
use devices::HostSnapshot;
use doctor::Inspection;

use crate::step::{Finding, Outcome};
use contents::Contents;

/// The exit status after an interruption, as in shells.
const INTERRUPTED: u8 = 130;

/// The format of a report.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputFormat {
    /// Human-readable
    Text,
    /// JSON
    Json,
    /// For a bug report, without private data
    Markdown,
}

/// What a verification found.
pub struct Report(Contents);

impl Report {
    pub(crate) fn new(
        findings: Vec<Finding>,
        inspection: Option<Inspection>,
        snapshot: Option<&HostSnapshot>,
        interrupted: bool,
    ) -> Report {
        Report(Contents::new(findings, inspection, snapshot, interrupted))
    }

    /// Prints the report to standard output.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(&self, format: OutputFormat) -> Result<(), Failure> {
        match format {
            OutputFormat::Text => cli::print(&text::text(&self.0)),
            OutputFormat::Json => cli::print_json(&json::Document::of(&self.0)),
            OutputFormat::Markdown => cli::print(&markdown::markdown(&self.0)),
        }
    }

    /// 0 if no step failed, 1 if one failed, 130 after an interruption.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        if self.0.interrupted {
            return ExitCode::from(INTERRUPTED);
        }
        if self.0.count(Outcome::Failed) > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
