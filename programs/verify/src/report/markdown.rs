//! The report for a bug report. It contains only what [`node`](super::node) collects, and
//! from each finding the parts without private data: no details, no hints.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use devices::printable::is_unsafe;
use doctor::{Subject, Verdict};

use super::contents::Contents;
use super::text::measurement;

pub(super) fn markdown(report: &Contents) -> String {
    let mut text = String::from("# Verification of a node\n\n");
    let versions =
        report.versions.rows().map(|(name, version)| [name.to_owned(), version.to_owned()]);
    table(&mut text, ["software", "version"], versions);
    text.push_str("\n## Devices\n\n");
    if report.devices.is_empty() {
        text.push_str("None.\n");
    } else {
        let devices = report.devices.iter().map(|device| {
            let supports = device.supports.to_owned();
            [&device.description, &device.hardware, &device.driver, &supports, &device.health]
                .map(Clone::clone)
        });
        table(&mut text, ["device", "hardware", "driver", "supports", "health"], devices);
    }
    let _ = write!(text, "\n## Steps: {}\n\n", report.counts());
    let steps = report.findings.iter().map(|finding| {
        let object = finding.object.as_ref().map(|object| format!("{object}: "));
        let measured: Vec<String> = finding.measurements.iter().map(measurement).collect();
        [
            finding.outcome.name().to_owned(),
            finding.step.name().to_owned(),
            object.unwrap_or_default() + &finding.what,
            measured.join(" "),
        ]
    });
    table(&mut text, ["result", "step", "what", "measured"], steps);
    if !report.checks.is_empty() {
        text.push_str("\n## Checks of the doctor\n\n");
        let mut counts: BTreeMap<(Subject, Verdict), usize> = BTreeMap::new();
        for check in &report.checks {
            *counts.entry((check.subject, check.verdict)).or_default() += 1;
        }
        let rows = counts.into_iter().map(|((subject, verdict), count)| {
            [subject.name().to_owned(), verdict.label().to_owned(), count.to_string()]
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
