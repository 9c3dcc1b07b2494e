//! Formats the results: a table for a terminal, and a Markdown page.

use std::fmt::Write;

use crate::group::{AppliesTo, Budget, Group, Row};

/// Formats the results as a table for a terminal.
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

/// Formats the results as the page `docs/maintainers/benchmarks.md`.
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

`cargo xtask bench` writes this page. It measures the release program from outside, as a kubelet would use it: an inventory with eight GPUs, `serve` with both
driver models, real sockets, and a client in Rust on the same machine. The budget column shows the limit of a result and the statistic to which it applies.
No test asserts these results, because they depend on the machine and its load.

An inventory records which files exist. On a live host, the plugin also checks each file of an allocation, which is not part of these results.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn row(values: &[f64], limit: f64, applies_to: AppliesTo) -> Row {
        Row {
            what: "start".to_owned(),
            unit: "ms",
            sample: Sample::new(values.to_vec()).unwrap(),
            budget: Some(Budget { limit, applies_to }),
        }
    }

    #[test]
    fn reports_whether_a_budget_is_met_and_by_how_much_it_is_missed() {
        let values = [5.0, 8.0, 12.5];
        assert_eq!(
            cells(&row(&values, 10.0, AppliesTo::Median)),
            ["8.00 ms", "12.5 ms", "5.00 to 12.5", "median < 10.0 ms: met"]
        );
        let missed = cells(&row(&values, 10.0, AppliesTo::Percentile99));
        assert_eq!(missed[3], "p99 < 10.0 ms: MISSED by 25 %");
    }

    #[test]
    fn both_formats_contain_every_value() {
        let rows = vec![row(&[123.4], 4.0, AppliesTo::Median)];
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
