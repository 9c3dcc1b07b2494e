//! The checks as text and as JSON.

use std::fmt::Write as _;

use cli::Color;
use devices::printable::printable_line;
use serde::Serialize;

use super::check::{Check, Verdict};

/// The widths of the columns for verdicts and subjects.
const VERDICT_WIDTH: usize = "not checked".len();
const SUBJECT_WIDTH: usize = "kubelet-directory".len();

/// The text report: a line per check, its advice below it, and the counts.
pub(crate) fn text(checks: &[Check], color: Color) -> String {
    let mut text = String::new();
    for check in checks {
        // Writing to a String cannot fail, here and below.
        let _ = line(&mut text, check, color);
    }
    let counts = Counts::of(checks);
    let _ = writeln!(
        text,
        "\n{}, {}, {} ok, {} not checked",
        counted(counts.problem, "problem"),
        counted(counts.warning, "warning"),
        counts.ok,
        counts.not_checked
    );
    text
}

fn line(text: &mut String, check: &Check, color: Color) -> std::fmt::Result {
    let (start, end) = match color {
        Color::Shown => (style(check.verdict), "\x1b[0m"),
        Color::Plain => ("", ""),
    };
    let Check { subject, verdict, what, .. } = check;
    write!(text, "{start}{:VERDICT_WIDTH$}{end}  {subject:SUBJECT_WIDTH$}  ", verdict.label())?;
    if let Some(object) = &check.object {
        write!(text, "{}: ", printable_line(object))?;
    }
    writeln!(text, "{}", printable_line(what))?;
    if let Some(advice) = &check.advice {
        let indent = VERDICT_WIDTH + SUBJECT_WIDTH + 4;
        writeln!(text, "{:indent$}-> {}", "", printable_line(advice))?;
    }
    Ok(())
}

const fn style(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "\x1b[32m",
        Verdict::Warning => "\x1b[33m",
        Verdict::Problem => "\x1b[1;31m",
        Verdict::NotChecked => "\x1b[2m",
    }
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// The JSON report.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    counts: Counts,
    checks: Vec<CheckView<'a>>,
}

/// The number of checks with each verdict.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    /// The number of problems.
    pub(crate) problem: usize,
    warning: usize,
    ok: usize,
    not_checked: usize,
}

#[derive(Serialize)]
struct CheckView<'a> {
    subject: &'a str,
    object: Option<&'a str>,
    verdict: &'a str,
    what: &'a str,
    advice: Option<&'a str>,
}

impl Counts {
    /// Counts the verdicts of `checks`.
    pub(crate) fn of(checks: &[Check]) -> Counts {
        let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
        Counts {
            problem: count(Verdict::Problem),
            warning: count(Verdict::Warning),
            ok: count(Verdict::Ok),
            not_checked: count(Verdict::NotChecked),
        }
    }
}

impl Report<'_> {
    /// The report of `checks`.
    pub(crate) fn of(checks: &[Check]) -> Report<'_> {
        Report { counts: Counts::of(checks), checks: checks.iter().map(CheckView::of).collect() }
    }
}

impl<'a> CheckView<'a> {
    fn of(check: &'a Check) -> CheckView<'a> {
        CheckView {
            subject: check.subject.name(),
            object: check.object.as_deref(),
            verdict: check.verdict.key(),
            what: &check.what,
            advice: check.advice.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Subject;

    #[test]
    fn colors_change_nothing_else() {
        let checks = [
            Subject::Windows.ok("a"),
            Subject::Device.problem("b", "c").of("d"),
            Subject::Hcs.warning("e", "f"),
            Subject::Nvml.not_checked("g"),
        ];
        let plain = text(&checks, Color::Plain);
        let mut colored = text(&checks, Color::Shown);
        assert_ne!(colored, plain);
        for verdict in Verdict::ALL {
            assert!(colored.contains(style(verdict)), "{verdict:?}");
            colored = colored.replace(style(verdict), "");
        }
        assert_eq!(colored.replace("\x1b[0m", ""), plain);
        assert!(plain.ends_with("\n1 problem, 1 warning, 1 ok, 1 not checked\n"), "{plain}");
    }

    #[test]
    fn every_subject_and_verdict_fits_its_column() {
        assert!(Subject::ALL.iter().all(|subject| subject.name().len() <= SUBJECT_WIDTH));
        assert!(Verdict::ALL.iter().all(|verdict| verdict.label().len() <= VERDICT_WIDTH));
    }
}
