//! The report for people. It has colors, which are removed where no terminal shows them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::builder::styling::Style;
use command_line::verdict;
use host::printable::{printable, printable_line, printable_lines};

use super::summary::{devices, versions};
use super::{Report, counted, measured};
use crate::finding::{Finding, Status};

/// How wide the columns of the status and the subject are.
const INDENT: usize = 32;

/// How many findings with the same subject and status, and how many devices, are shown. A node has
/// fewer GPUs.
const SIMILAR: usize = 20;

/// How many details of a finding are shown: more than the last lines of a program's output.
const DETAILS: usize = 50;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let Some(steps) = &report.steps else {
        let checked = report.checks.iter().filter(|check| check.status != Status::Skipped);
        // Writing to a String cannot fail, here and below.
        let _ = write_findings(&mut text, &checked.cloned().collect::<Vec<_>>(), Status::verdict);
        let _ = write_not_checked(&mut text, &report.checks);
        let _ = writeln!(text, "\n{}", counted(&report.checks, Status::verdict));
        return text;
    };
    for (_, name, version) in versions(&report.snapshot) {
        let _ = writeln!(text, "{name:22}{}", printable(&version));
    }
    let devices = devices(&report.snapshot);
    for [description, _, driver, _, health] in devices.iter().take(SIMILAR) {
        let description = printable(description);
        let _ = writeln!(text, "{:22}{description}, driver {driver}, {health}", "device");
    }
    if let Some(rest) = more(devices.len(), SIMILAR) {
        let _ = writeln!(text, "{:22}{rest}", "device");
    }
    text.push('\n');
    let _ = write_findings(&mut text, steps, Status::result);
    let _ = writeln!(text, "\n{}", counted(steps, Status::result));
    text
}

/// One line for all that was not checked for one reason.
fn write_not_checked(text: &mut String, checks: &[Finding]) -> std::fmt::Result {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for check in checks.iter().filter(|check| check.status == Status::Skipped) {
        match reasons.iter_mut().find(|(reason, _)| *reason == check.what) {
            Some((_, subjects)) => subjects.push(check.name),
            None => reasons.push((&check.what, vec![check.name])),
        }
    }
    let name = Status::Skipped.verdict();
    let style = style(Status::Skipped);
    for (reason, subjects) in reasons {
        let subjects = subjects.join(", ");
        writeln!(text, "{style}{name}{style:#}  {subjects}: {}", printable_line(reason))?;
    }
    Ok(())
}

/// The findings in lines. Of many similar ones, only the first are shown.
fn write_findings(
    text: &mut String,
    findings: &[Finding],
    name: fn(Status) -> &'static str,
) -> std::fmt::Result {
    for group in findings.chunk_by(|a, b| a.name == b.name) {
        let mut counts = BTreeMap::new();
        for finding in group {
            let count: &mut usize = counts.entry(finding.status).or_default();
            *count += 1;
            if *count <= SIMILAR {
                write_finding(text, finding, name)?;
            }
        }
        for (status, count) in counts {
            if let Some(rest) = more(count, SIMILAR) {
                write_line(text, name(status), style(status), group[0].name, &rest)?;
            }
        }
    }
    Ok(())
}

/// A line for a finding, and below it what was measured, the details and the hint.
fn write_finding(
    text: &mut String,
    finding: &Finding,
    name: fn(Status) -> &'static str,
) -> std::fmt::Result {
    let status = finding.status;
    let subject = finding.name;
    let sentence = finding.sentence();
    write_line(text, name(status), style(status), subject, &printable_line(&sentence))?;
    if !finding.measurements.is_empty() {
        writeln!(text, "{:INDENT$}{}", "", measured(finding))?;
    }
    for detail in finding.details.iter().take(DETAILS) {
        // A detail may be a line that a program printed, or a command line; both may be long.
        let line = detail.replace('\n', " ");
        writeln!(text, "{:INDENT$}{}", "", printable_lines(&line))?;
    }
    if let Some(rest) = more(finding.details.len(), DETAILS) {
        writeln!(text, "{:INDENT$}{rest}", "")?;
    }
    if let Some(hint) = &finding.hint {
        writeln!(text, "{:INDENT$}-> {}", "", printable_line(hint))?;
    }
    Ok(())
}

fn write_line(
    text: &mut String,
    name: &str,
    style: Style,
    subject: &str,
    sentence: &str,
) -> std::fmt::Result {
    writeln!(text, "{style}{name:11}{style:#}  {subject:17}  {sentence}")
}

/// How many of `count` things are not among the first `shown`, if any.
fn more(count: usize, shown: usize) -> Option<String> {
    let more = count.checked_sub(shown).filter(|more| *more > 0)?;
    Some(format!("… and {more} more; `--output json` lists all"))
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
    use crate::finding::{FindingId, Subject};

    #[test]
    fn every_status_has_its_color_and_its_count() {
        let checks = vec![
            Subject::Windows.ok("a"),
            FindingId::ProblemCode.failed("b", "c").of("d"),
            FindingId::HcsSchemaTooOld.warning("e", "f"),
            Subject::Nvml.skipped("g"),
        ];
        let text = text(&Report { checks, ..Report::default() });
        for line in [
            "\x1b[32mok         \x1b[0m  windows            a\n",
            "\x1b[1m\x1b[31mproblem    \x1b[0m  device             d: b\n                                -> c\n",
            "\x1b[33mwarning    \x1b[0m  hcs                e\n",
            "\x1b[2mnot checked\x1b[0m  nvml: g\n",
            "\n1 problem, 1 warning, 1 ok, 1 not checked\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn of_many_similar_findings_only_the_first_are_shown() {
        let mut checks = Vec::new();
        for n in 0..10_000 {
            checks.push(Subject::Device.ok("fine").of(format!("gpu {n}")));
            if n % 400 == 0 {
                checks.push(FindingId::ProblemCode.failed("broken", "fix").of(format!("gpu {n}")));
            }
        }
        checks.push(Subject::Nvml.ok("last").detail((0..51).map(|n| format!("detail {n}"))));
        let text = text(&Report { checks, ..Report::default() });
        for line in [
            "  device             gpu 19: fine\n",
            "  device             gpu 7600: broken\n",
            "  device             … and 5 more; `--output json` lists all\n",
            "  device             … and 9980 more; `--output json` lists all\n",
            "  nvml               last\n",
            "  detail 49\n                                … and 1 more; `--output json` lists all\n",
            "\n25 problems, 0 warnings, 10001 ok, 0 not checked\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("gpu 20: fine") && !text.contains("gpu 8000: broken"), "{text}");
        assert_eq!(text.lines().count(), 20 + 2 * 20 + 2 + 1 + 50 + 1 + 2);
        assert_eq!(more(50, 50), None);
    }
}
