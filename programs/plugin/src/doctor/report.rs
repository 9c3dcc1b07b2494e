//! The findings as text, JSON and Markdown.

mod json;
mod markdown;
mod summary;
mod text;

use std::process::ExitCode;

use clap::ValueEnum;
use devices::HostSnapshot;
use node::cli::Failure;

use crate::doctor::finding::{Finding, Status, count};

/// The exit status after an interruption, as in shells.
const INTERRUPTED: u8 = 130;

/// The format of a report.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OutputFormat {
    /// Human-readable
    Text,
    /// JSON
    Json,
    /// For a bug report, without private data
    Markdown,
}

/// What was found out about a node.
pub(crate) struct Report {
    /// The host, as far as it is known.
    snapshot: HostSnapshot,
    /// What was looked at.
    checks: Vec<Finding>,
    /// What was tried, if anything was to be.
    steps: Option<Vec<Finding>>,
    interrupted: bool,
}

impl Report {
    /// A report of `checks`.
    pub(crate) fn new(snapshot: Option<HostSnapshot>, checks: Vec<Finding>) -> Report {
        let snapshot = snapshot.unwrap_or_default();
        Report { snapshot, checks, steps: None, interrupted: false }
    }

    /// Adds what was tried.
    pub(crate) fn tried(self, steps: Vec<Finding>, interrupted: bool) -> Report {
        Report { steps: Some(steps), interrupted, ..self }
    }

    /// Prints the report to standard output.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(crate) fn print(&self, format: OutputFormat) -> Result<(), Failure> {
        match format {
            OutputFormat::Text => node::cli::print_colored(&text::text(self)),
            OutputFormat::Json => json::print(self),
            OutputFormat::Markdown => node::cli::print(&markdown::markdown(self)),
        }
    }

    /// 0 if nothing failed, also if there are warnings, 1 if something failed, 130 after an
    /// interruption.
    #[must_use]
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.interrupted {
            return ExitCode::from(INTERRUPTED);
        }
        let findings = self.steps.as_ref().unwrap_or(&self.checks);
        if count(findings, Status::Failed) > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// From the worst to the best, which is the order of all counts.
const STATUSES: [Status; 4] = [Status::Failed, Status::Warning, Status::Ok, Status::Skipped];

/// The names of [`STATUSES`].
type Names = [&'static str; 4];

/// For what was looked at.
const VERDICTS: Names = ["problem", "warning", "ok", "not checked"];

/// For what was tried.
const OUTCOMES: Names = ["failed", "warning", "ok", "skipped"];

fn name(names: Names, status: Status) -> &'static str {
    let index = STATUSES.iter().position(|known| *known == status);
    index.map_or("", |index| names[index])
}

/// How many findings have each of [`STATUSES`], with its name.
fn counts(findings: &[Finding], names: Names) -> [(&'static str, usize); 4] {
    STATUSES.map(|status| (name(names, status), count(findings, status)))
}

/// A finding of what was looked at in one line.
pub(crate) fn line(finding: &Finding) -> String {
    let verdict = name(VERDICTS, finding.status);
    format!("{verdict}: {}: {}", finding.subject.0, finding.sentence())
}
