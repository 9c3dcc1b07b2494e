//! The table: for a terminal, and between the markers of a page.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::trial::{Outcome, Times};

const BEGIN: &str = "<!-- written by `cargo xtask attack` -->\n";
const END: &str = "<!-- end -->\n";

/// The heading of the table for a terminal.
pub(crate) fn heading() -> String {
    let heading = ["attack", "repeated", "Allocate p99", "memory peak", "after", "log lines/s"];
    line(&heading.map(str::to_owned))
}

/// The row of an outcome.
pub(crate) fn row(outcome: &Outcome) -> String {
    let mut out = line(&cells(outcome));
    if outcome.registrations > 0 {
        append(&mut out, &format!("  registered again: {}\n", outcome.registrations));
    }
    for violation in &outcome.violations {
        append(&mut out, &format!("  VIOLATED: {violation}\n"));
    }
    out
}

fn line([name, rest @ ..]: &[String; 6]) -> String {
    let mut out = format!("{name:<22}");
    for cell in rest {
        append(&mut out, &format!("{cell:>14}"));
    }
    out + "\n"
}

fn cells(outcome: &Outcome) -> [String; 6] {
    let p99 = outcome.allocate.as_ref().map(|sample| format!("{:.1} ms", sample.percentile(99)));
    [
        outcome.name.to_owned(),
        outcome.actions.to_string(),
        p99.unwrap_or_default(),
        format!("{:.1} MiB", outcome.peak_mib),
        format!("{:.1} MiB", outcome.final_mib),
        format!("{:.1}", outcome.lines_per_second),
    ]
}

/// Replaces what is between the markers of a page.
pub(crate) fn write(page: &Path, outcomes: &[Outcome], times: &Times) -> Result<()> {
    let name = page.display();
    let old = std::fs::read_to_string(page).with_context(|| format!("cannot read `{name}`"))?;
    let new = replaced(&old, &markdown(outcomes, times)).with_context(|| {
        format!("`{name}` has no lines `{}` and `{}`", BEGIN.trim(), END.trim())
    })?;
    std::fs::write(page, new).with_context(|| format!("cannot write `{name}`"))
}

fn replaced(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

fn markdown(outcomes: &[Outcome], times: &Times) -> String {
    let facts = daemon_bed::describe_machine();
    let fact = |name: &str| facts.iter().find(|(n, _)| *n == name).map_or("?", |(_, f)| f);
    let (alone, together) = (times.attack.as_secs(), times.together.as_secs());
    let (cores, date) = (fact("cores"), fact("date"));
    let mut out = format!(
        "{alone} s for each attack and {together} s for all together, on {cores} cores, {date}:\n\n\
         | attack | what it does | repeated | p99 of Allocate meanwhile | memory, peak | memory, after | log lines/s | result |\n\
         |---|---|---|---|---|---|---|---|\n"
    );
    for outcome in outcomes {
        let [name, figures @ ..] = cells(outcome);
        let result = if outcome.violations.is_empty() { "kept serving" } else { "**violated**" };
        let (about, figures) = (outcome.about, figures.join(" | "));
        append(&mut out, &format!("| `{name}` | {about} | {figures} | {result} |\n"));
    }
    out
}

fn append(out: &mut String, text: &str) {
    out.write_str(text).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(violations: &[&str]) -> Outcome {
        Outcome {
            name: "flood",
            about: "connects",
            actions: 7,
            allocate: daemon_bed::Sample::new(vec![1.0]),
            registrations: 2,
            peak_mib: 9.0,
            final_mib: 8.0,
            lines_per_second: 0.5,
            violations: violations.iter().map(|&violation| violation.to_owned()).collect(),
        }
    }

    #[test]
    fn the_table_shows_figures_and_violations() {
        let text = row(&outcome(&["the daemon ended"]));
        for part in ["flood", "1.0 ms", "9.0 MiB", "registered again: 2", "VIOLATED: the daemon"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(markdown(&[outcome(&[])], &crate::FULL).contains("| 0.5 | kept serving |"));
        assert!(markdown(&[outcome(&["x"])], &crate::FULL).contains("**violated**"));
    }

    #[test]
    fn only_the_text_between_the_markers_is_replaced() {
        let page = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(replaced(&page, "new\n"), Some(format!("a\n{BEGIN}\nnew\n\n{END}b\n")));
        assert_eq!(replaced("a", "new"), None);
    }
}
