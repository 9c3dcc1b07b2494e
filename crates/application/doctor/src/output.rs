//! The findings as text, JSON and Markdown.

mod json;
mod markdown;
mod summary;
mod text;

use std::process::ExitCode;

use clap::ValueEnum;
use command_line::Failure;
use command_line::verdict::print_report;
use host::HostSnapshot;

use crate::finding::{Finding, Status, counts};

/// The exit status after an interruption, as in shells.
const INTERRUPTED: u8 = 130;

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OutputFormat {
    /// Human-readable
    Text,
    /// JSON
    Json,
    /// For a bug report, without private data
    Markdown,
}

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) snapshot: HostSnapshot,
    /// What was looked at.
    pub(crate) checks: Vec<Finding>,
    /// What was tried, if anything was to be.
    pub(crate) steps: Option<Vec<Finding>>,
    pub(crate) interrupted: bool,
}

impl Report {
    pub(crate) fn print(&self, format: OutputFormat) -> Result<(), Failure> {
        match format {
            OutputFormat::Text => print_report(&text::text(self)),
            OutputFormat::Json => command_line::print_json(&json::document(self)),
            OutputFormat::Markdown => command_line::print(&markdown::markdown(self)),
        }
    }

    /// 0 if nothing failed, also if there are warnings, 1 if something failed, 130 after an
    /// interruption.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.interrupted {
            return ExitCode::from(INTERRUPTED);
        }
        let mut findings = self.steps.as_ref().unwrap_or(&self.checks).iter();
        let failed = findings.any(|finding| finding.status == Status::Failed);
        if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// How many findings have each status: `1 failed, 0 warnings, 3 ok, 2 skipped`.
fn counted(findings: &[Finding], name: fn(Status) -> &'static str) -> String {
    let named = Status::ALL.map(name).into_iter().zip(counts(findings));
    let texts = named.map(|(name, count)| match name {
        "problem" | "warning" if count != 1 => format!("{count} {name}s"),
        name => format!("{count} {name}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// What was measured, as `connectMs=0.123`.
fn measured(finding: &Finding) -> String {
    let values = finding.measurements.iter().map(|(key, value)| format!("{key}={value}"));
    values.collect::<Vec<_>>().join(" ")
}
