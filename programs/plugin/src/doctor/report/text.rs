//! The report for people. It has colors, which are removed where no terminal shows them.

use std::fmt::Write as _;

use devices::printable::{printable, printable_line, printable_lines};

use super::summary::{devices, versions};
use super::{Names, OUTCOMES, Report, VERDICTS, counts, name};
use crate::doctor::finding::{Finding, Measurement, Status, Value};

/// For a sentence.
const NOUNS: Names = ["problem(s)", "warning(s)", "ok", "not checked"];

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let Some(steps) = &report.steps else {
        write_findings(&mut text, &report.checks, VERDICTS);
        return format!("{text}\n{}\n", counted(&report.checks, NOUNS));
    };
    for (_, name, version) in versions(&report.snapshot) {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "{name:22}{}", printable(&version));
    }
    for [description, _, driver, _, health] in devices(&report.snapshot) {
        let description = printable(&description);
        let _ = writeln!(text, "{:22}{description}, driver {driver}, {health}", "device");
    }
    text.push('\n');
    write_findings(&mut text, steps, OUTCOMES);
    format!("{text}\n{}\n", counted(steps, OUTCOMES))
}

/// The findings in columns.
fn write_findings(text: &mut String, findings: &[Finding], names: Names) {
    let subjects = findings.iter().map(|finding| finding.subject.0.len());
    let widths = [names.map(str::len).into_iter().max(), subjects.max()];
    for finding in findings {
        let name = name(names, finding.status);
        let _ = write_finding(text, finding, name, widths.map(Option::unwrap_or_default));
    }
}

/// "1 failed, 0 warning, 3 ok, 2 skipped".
pub(super) fn counted(findings: &[Finding], names: Names) -> String {
    counts(findings, names).map(|(name, count)| format!("{count} {name}")).join(", ")
}

/// A line for a finding, and below it what was measured, the details and the hint.
fn write_finding(
    text: &mut String,
    finding: &Finding,
    status: &str,
    [status_width, subject_width]: [usize; 2],
) -> std::fmt::Result {
    let (style, subject) = (style(finding.status), finding.subject.0);
    let sentence = finding.sentence();
    write!(text, "{style}{status:status_width$}\x1b[0m  {subject:subject_width$}  ")?;
    writeln!(text, "{}", printable_line(&sentence))?;
    let indent = status_width + subject_width + 4;
    if !finding.measurements.is_empty() {
        let measured: Vec<String> = finding.measurements.iter().map(measurement).collect();
        writeln!(text, "{:indent$}{}", "", measured.join(" "))?;
    }
    for detail in &finding.details {
        // The output of a program, or a command line, which may be long.
        let line = detail.replace('\n', " ");
        writeln!(text, "{:indent$}{}", "", printable_lines(&line))?;
    }
    if let Some(hint) = &finding.hint {
        writeln!(text, "{:indent$}-> {}", "", printable_line(hint))?;
    }
    Ok(())
}

const fn style(status: Status) -> &'static str {
    match status {
        Status::Ok => "\x1b[32m",
        Status::Warning => "\x1b[33m",
        Status::Failed => "\x1b[1;31m",
        Status::Skipped => "\x1b[2m",
    }
}

/// `connectMs=0.123`.
pub(super) fn measurement((key, value): &Measurement) -> String {
    match value {
        Value::Time(time) => format!("{key}={:.3}", time.as_secs_f64() * 1000.0),
        Value::Count(count) => format!("{key}={count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Subject;

    #[test]
    fn every_status_has_its_color_and_its_count() {
        let checks = vec![
            Subject::WINDOWS.ok("a"),
            Subject::DEVICE.failed("b", "c").of("d"),
            Subject::HCS.warning("e", "f"),
            Subject::NVML.skipped("g"),
        ];
        let text = text(&Report::new(None, checks));
        for line in [
            "\x1b[32mok         \x1b[0m  windows  a\n",
            "\x1b[1;31mproblem    \x1b[0m  device   d: b\n                      -> c\n",
            "\x1b[33mwarning    \x1b[0m  hcs      e\n",
            "\x1b[2mnot checked\x1b[0m  nvml     g\n",
            "\n1 problem(s), 1 warning(s), 1 ok, 1 not checked\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
