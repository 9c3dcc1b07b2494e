//! The report for a bug report. It contains only what [`summary`](super::summary) collects, and
//! from each finding the parts without private data: no details, no hints.

use std::fmt::Write as _;

use host::printable::is_unsafe;

use super::summary::{DEVICE, devices, versions};
use super::{Report, counted, measured};
use crate::finding::Status;

pub(super) fn markdown(report: &Report) -> String {
    let title = if report.steps.is_some() { "Verification" } else { "Checks" };
    let mut text = format!("# {title} of a node\n\n");
    let versions = versions(&report.snapshot);
    let rows = versions.map(|(_, name, version)| [name.to_owned(), version]);
    table(&mut text, ["software", "version"], rows);
    text.push_str("\n## Devices\n\n");
    table(&mut text, DEVICE, devices(&report.snapshot));
    if let Some(steps) = &report.steps {
        let _ = write!(text, "\n## Steps: {}\n\n", counted(steps, Status::result));
        let steps = steps.iter().map(|step| {
            let result = step.status.result().to_owned();
            [result, step.name.to_owned(), step.sentence(), measured(step)]
        });
        table(&mut text, ["result", "step", "what", "measured"], steps);
    }
    if !report.checks.is_empty() {
        text.push_str("\n## Checks of the doctor\n\n");
        // What a check found, and the object, may be private.
        let checks = report.checks.iter();
        let rows = checks.map(|check| {
            [check.name, check.status.verdict(), check.id.unwrap_or_default()].map(str::to_owned)
        });
        table(&mut text, ["subject", "verdict", "ID"], rows);
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
