//! The report for a bug report. It contains only what [`summary`](super::summary) collects, and
//! from each finding the parts without private data: no details, no hints.

use std::fmt::Write as _;

use devices::printable::is_unsafe;

use super::summary::{DeviceSummary, Versions};
use super::text::{counts, measurement};
use super::{Report, STATUSES, outcome, verdict};
use crate::doctor::finding::count;

pub(super) fn markdown(report: &Report) -> String {
    let title = if report.steps.is_some() { "Verification" } else { "Checks" };
    let mut text = format!("# {title} of a node\n\n");
    let versions = Versions::of(&report.snapshot);
    let rows = versions.rows().map(|(name, version)| [name.to_owned(), version.to_owned()]);
    table(&mut text, ["software", "version"], rows);
    text.push_str("\n## Devices\n\n");
    let devices = DeviceSummary::all(&report.snapshot);
    if devices.is_empty() {
        text.push_str("None.\n");
    } else {
        let rows = devices.into_iter().map(|device| {
            let DeviceSummary { description, hardware, driver, supports, health } = device;
            [description, hardware, driver, supports.to_owned(), health]
        });
        table(&mut text, ["device", "hardware", "driver", "supports", "health"], rows);
    }
    if let Some(steps) = &report.steps {
        let _ = write!(text, "\n## Steps: {}\n\n", counts(steps, outcome));
        let steps = steps.iter().map(|step| {
            let measured: Vec<String> = step.measurements.iter().map(measurement).collect();
            let (result, name) = (outcome(step.status).to_owned(), step.subject.0.to_owned());
            [result, name, step.sentence(), measured.join(" ")]
        });
        table(&mut text, ["result", "step", "what", "measured"], steps);
    }
    if !report.checks.is_empty() {
        text.push_str("\n## Checks of the doctor\n\n");
        // What a check found may be private.
        let subjects = report.checks.chunk_by(|a, b| a.subject == b.subject);
        let rows = subjects.flat_map(|checks| {
            let counts = STATUSES.map(|status| (status, count(checks, status)));
            counts.into_iter().filter(|(_, count)| *count > 0).map(|(status, count)| {
                let subject = checks[0].subject.0.to_owned();
                [subject, verdict(status).to_owned(), count.to_string()]
            })
        });
        table(&mut text, ["subject", "verdict", "number"], rows);
    }
    text
}

fn table<const N: usize>(
    text: &mut String,
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "| {} |\n|{}", head.join(" | "), "---|".repeat(N));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.map(|cell| escaped(&cell)).join(" | "));
    }
}

/// The text of a cell. A driver's description may contain anything.
fn escaped(cell: &str) -> String {
    let mut text = String::new();
    for c in cell.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' => text.extend(['\\', c]),
            c if is_unsafe(c) => text.push(' '),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_always_one_cell_of_plain_text() {
        assert_eq!(escaped("a|b\nc<img>`x`\u{202e}"), r"a\|b c\<img\>\`x\` ");
        assert_eq!(escaped("NVIDIA Tesla T4 (TM) 31.0.15"), "NVIDIA Tesla T4 (TM) 31.0.15");
    }
}
