//! The report for people. It has colors, which are removed where no terminal shows them.

use std::fmt::Write as _;

use devices::printable::{printable, printable_line, printable_lines};

use super::{Report, outcome, verdict};
use crate::doctor::finding::{Finding, Measurement, Status, Value, count};

/// The widths of the columns for statuses and subjects of what is looked at, and of what is tried.
const LOOKED: [usize; 2] = ["not checked".len(), "kubelet-directory".len()];
const TRIED: [usize; 2] = ["warning".len(), "discovery".len()];

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let Some(steps) = &report.steps else {
        for check in &report.checks {
            // Writing to a String cannot fail, here and below.
            let _ = write_finding(&mut text, check, verdict(check.status), LOOKED);
        }
        let count = |status| count(&report.checks, status);
        let _ = writeln!(
            text,
            "\n{}, {}, {} ok, {} not checked",
            counted(count(Status::Failed), "problem"),
            counted(count(Status::Warning), "warning"),
            count(Status::Ok),
            count(Status::Skipped)
        );
        return text;
    };
    for (name, version) in report.versions.rows() {
        let _ = writeln!(text, "{name:22}{}", printable(version));
    }
    for device in &report.devices {
        let description = printable(&device.description);
        let (driver, health) = (&device.driver, &device.health);
        let _ = writeln!(text, "{:22}{description}, driver {driver}, {health}", "device");
    }
    text.push('\n');
    for step in steps {
        let _ = write_finding(&mut text, step, outcome(step.status), TRIED);
    }
    let _ = writeln!(text, "\n{}", outcomes(steps));
    text
}

/// "1 failed, 0 warning, 3 ok, 2 skipped".
pub(super) fn outcomes(steps: &[Finding]) -> String {
    let order = [Status::Failed, Status::Warning, Status::Ok, Status::Skipped];
    order.map(|status| format!("{} {}", count(steps, status), outcome(status))).join(", ")
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

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
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
    use crate::doctor::evaluate::tests::SUBJECTS;
    use crate::doctor::finding::Subject;

    #[test]
    fn every_status_has_its_color_and_its_count() {
        let checks = vec![
            Subject::WINDOWS.ok("a"),
            Subject::DEVICE.failed("b", "c").of("d"),
            Subject::HCS.warning("e", "f"),
            Subject::NVML.skipped("g"),
        ];
        let text = text(&Report::new(None, None, checks));
        for line in [
            "\x1b[32mok         \x1b[0m  windows            a\n",
            "\x1b[1;31mproblem    \x1b[0m  device             d: b\n                                -> c\n",
            "\x1b[33mwarning    \x1b[0m  hcs                e\n",
            "\x1b[2mnot checked\x1b[0m  nvml               g\n",
            "\n1 problem, 1 warning, 1 ok, 1 not checked\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn every_subject_fits_its_column() {
        assert!(SUBJECTS.iter().all(|subject| subject.len() <= LOOKED[1]));
    }
}
