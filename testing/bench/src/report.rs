//! Formats the results: a table for a terminal, and a Markdown page.

use std::fmt::Write;

use crate::group::{AppliesTo, Budget, Group, Row};

/// Formats the results as a table for a terminal.
pub(crate) fn text(groups: &[Group]) -> String {
    let mut out = String::new();
    for Group { title, rows } in groups {
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

/// Formats the results as the page `docs/maintainers/benchmarks.md`.
pub(crate) fn markdown(groups: &[Group], machine: &[(&str, String)]) -> String {
    let mut out = String::from(INTRODUCTION);
    for (name, fact) in machine {
        append(&mut out, format_args!("| {name} | {fact} |\n"));
    }
    for Group { title, rows } in groups {
        append(&mut out, format_args!("\n## {title}\n\n"));
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

`cargo xtask bench` measures the release program from outside, as a kubelet would use it, and writes this page. The files of
[testing/bench](https://github.com/OWNER/REPOSITORY/tree/main/testing/bench/src/measures) describe each measurement. The host is an inventory with eight GPUs of
16 replicas each, unless a row names others. A budget names the limit and the statistic to which it applies; no test asserts it, because results depend
on the machine.

| machine | |
|---|---|
";

const HEADINGS: [&str; 4] = ["median", "p99", "5 to 95 %", "budget"];

/// Median, 99th percentile, spread, and the budget with its verdict.
fn cells(row: &Row) -> [String; 4] {
    let Row { unit, sample, budget, .. } = row;
    let with_unit = |value: f64| format!("{} {unit}", number(value));
    let several = sample.count() > 1;
    [
        with_unit(sample.median()),
        if several { with_unit(sample.percentile(99)) } else { String::new() },
        if several {
            format!("{} to {}", number(sample.percentile(5)), number(sample.percentile(95)))
        } else {
            String::new()
        },
        budget.map(|budget| verdict(budget, row)).unwrap_or_default(),
    ]
}

fn verdict(Budget { limit, applies_to }: Budget, row: &Row) -> String {
    let (value, which) = match applies_to {
        AppliesTo::Median => (row.sample.median(), "median"),
        AppliesTo::Percentile99 => (row.sample.percentile(99), "p99"),
    };
    let budget = format!("{which} < {} {}", number(limit), row.unit);
    if value < limit {
        format!("{budget}: met")
    } else {
        format!("{budget}: MISSED by {:.0} %", (value / limit - 1.0) * 100.0)
    }
}

/// Formats a number with three significant digits, or as a whole number.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string cannot fail");
}
