//! Figures for people: a table for a terminal, and a page of Markdown.

use std::fmt::Write;

use crate::measures::{Budget, Group, HoldsFor, Row};

/// A table for a terminal.
pub(crate) fn text(groups: &[Group]) -> String {
    let mut out = String::new();
    for Group { title, rows, .. } in groups {
        let [median, p99, spread, budget] = HEADINGS;
        append(&mut out, format_args!("\n{title}\n"));
        append(
            &mut out,
            format_args!("  {:<36} {median:>12} {p99:>12} {spread:>18}  {budget}\n", ""),
        );
        for row in rows {
            let [median, p99, spread, budget] = cells(row);
            append(
                &mut out,
                format_args!("  {:<36} {median:>12} {p99:>12} {spread:>18}  {budget}\n", row.what),
            );
        }
    }
    out
}

/// The page `docs/benchmarks.md`.
pub(crate) fn markdown(groups: &[Group], machine: &[(&str, String)]) -> String {
    let mut out = String::from(INTRODUCTION);
    for (name, fact) in machine {
        append(&mut out, format_args!("| {name} | {fact} |\n"));
    }
    for Group { title, how, rows } in groups {
        append(&mut out, format_args!("\n## {title}\n\n{how}\n\n"));
        append(&mut out, format_args!("| | {} |\n", HEADINGS.join(" | ")));
        out.push_str("|---|---|---|---|---|\n");
        for row in rows {
            append(&mut out, format_args!("| {} | {} |\n", row.what, cells(row).join(" | ")));
        }
    }
    out
}

const INTRODUCTION: &str = "\
# Benchmarks

Written by `cargo xtask bench`, which measures the release program from outside, as a kubelet meets it: a recorded host with eight GPUs,
`serve` with both driver models, real sockets, and a client in Rust on the same machine. A budget is what the design asks for, beside the figure it is
about. No test asserts any of this: figures depend on the machine and on what else it does.

Recorded hosts answer for their files themselves; a live host is asked for each file of an allocation, which is not in these figures.

| machine | |
|---|---|
";

const HEADINGS: [&str; 4] = ["median", "p99", "5 to 95 %", "budget"];

/// Median, 99th percentile, spread, and the budget with its verdict.
fn cells(row: &Row) -> [String; 4] {
    let Row { unit, sample, budget, .. } = row;
    let figure = |value: f64| format!("{} {unit}", number(value));
    let several = sample.count() > 1;
    [
        figure(sample.median()),
        if several { figure(sample.percentile(99)) } else { String::new() },
        if several {
            format!("{} to {}", number(sample.percentile(5)), number(sample.percentile(95)))
        } else {
            String::new()
        },
        budget.map(|budget| verdict(budget, row)).unwrap_or_default(),
    ]
}

fn verdict(Budget { limit, holds_for }: Budget, row: &Row) -> String {
    let (value, which) = match holds_for {
        HoldsFor::Median => (row.sample.median(), "median"),
        HoldsFor::NearlyAll => (row.sample.percentile(99), "p99"),
    };
    let asked = format!("{which} < {} {}", number(limit), row.unit);
    if value < limit {
        format!("{asked}: met")
    } else {
        format!("{asked}: MISSED by {:.0} %", (value / limit - 1.0) * 100.0)
    }
}

/// Three digits that count, or whole numbers.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn row(figures: &[f64], limit: f64, holds_for: HoldsFor) -> Row {
        Row {
            what: "start".to_owned(),
            unit: "ms",
            sample: Sample::new(figures.to_vec()).unwrap(),
            budget: Some(Budget { limit, holds_for }),
        }
    }

    #[test]
    fn a_budget_says_whether_it_is_met_and_by_how_much_it_is_missed() {
        let figures = [5.0, 8.0, 12.5];
        assert_eq!(
            cells(&row(&figures, 10.0, HoldsFor::Median)),
            ["8.00 ms", "12.5 ms", "5.00 to 12.5", "median < 10.0 ms: met"]
        );
        let missed = cells(&row(&figures, 10.0, HoldsFor::NearlyAll));
        assert_eq!(missed[3], "p99 < 10.0 ms: MISSED by 25 %");
    }

    #[test]
    fn both_forms_hold_every_figure() {
        let rows = vec![row(&[123.4], 4.0, HoldsFor::Median)];
        let groups = [Group { title: "Start", how: "By hand.", rows }];
        let page = markdown(&groups, &[("cores", "2".to_owned())]);
        for part in
            ["| cores | 2 |", "## Start\n\nBy hand.", "| start | 123 ms |  |  | median < 4.00 ms"]
        {
            assert!(page.contains(part), "{page}");
        }
        assert!(text(&groups).contains("123 ms"));
    }
}
