//! The report for people. It has colors, which are removed where no terminal shows them.

use std::fmt::Write as _;

use clap::builder::styling::Style;
use command_line::verdict;
use devices::printable::{printable, printable_line, printable_lines};

use super::summary::{devices, versions};
use super::{Report, counted, measured};
use crate::finding::{Finding, Status};

/// How wide the columns of the status and the subject are.
pub(super) const INDENT: usize = 32;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let Some(steps) = &report.steps else {
        // Writing to a String cannot fail, here and below.
        let _ = write_findings(&mut text, &report.checks, Status::verdict);
        return text;
    };
    for (_, name, version) in versions(&report.snapshot) {
        let _ = writeln!(text, "{name:22}{}", printable(&version));
    }
    for [description, _, driver, _, health] in devices(&report.snapshot) {
        let description = printable(&description);
        let _ = writeln!(text, "{:22}{description}, driver {driver}, {health}", "device");
    }
    text.push('\n');
    let _ = write_findings(&mut text, steps, Status::result);
    text
}

/// A line for each finding, and below it what was measured, the details and the hint.
fn write_findings(
    text: &mut String,
    findings: &[Finding],
    name: fn(Status) -> &'static str,
) -> std::fmt::Result {
    for finding in findings {
        let (style, subject) = (style(finding.status), finding.subject.0);
        let (name, sentence) = (name(finding.status), finding.sentence());
        let sentence = printable_line(&sentence);
        writeln!(text, "{style}{name:11}{style:#}  {subject:17}  {sentence}")?;
        if !finding.measurements.is_empty() {
            writeln!(text, "{:INDENT$}{}", "", measured(finding))?;
        }
        for detail in &finding.details {
            // A detail may be a line that a program printed, or a command line; both may be long.
            let line = detail.replace('\n', " ");
            writeln!(text, "{:INDENT$}{}", "", printable_lines(&line))?;
        }
        if let Some(hint) = &finding.hint {
            writeln!(text, "{:INDENT$}-> {}", "", printable_line(hint))?;
        }
    }
    writeln!(text, "\n{}", counted(findings, name))
}

const fn style(status: Status) -> Style {
    match status {
        Status::Ok => verdict::GOOD,
        Status::Warning => verdict::WARNING,
        Status::Failed => verdict::BAD,
        Status::Skipped => verdict::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Subject;

    #[test]
    fn every_status_has_its_color_and_its_count() {
        let checks = vec![
            Subject::WINDOWS.ok("a"),
            Subject::DEVICE.failed("b", "c").of("d"),
            Subject::HCS.warning("e", "f"),
            Subject::NVML.skipped("g"),
        ];
        let text = text(&Report { checks, ..Report::default() });
        for line in [
            "\x1b[32mok         \x1b[0m  windows            a\n",
            "\x1b[1m\x1b[31mproblem    \x1b[0m  device             d: b\n                                -> c\n",
            "\x1b[33mwarning    \x1b[0m  hcs                e\n",
            "\x1b[2mnot checked\x1b[0m  nvml               g\n",
            "\n1 problem, 1 warning, 1 ok, 1 not checked\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
