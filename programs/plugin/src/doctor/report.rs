//! The checks on standard output: for people, and for programs.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use serde::Serialize;

use super::check::{Check, Verdict};

/// Whether verdicts are coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Colour {
    /// On a terminal that shows it, whose user has not asked for none.
    Shown,
    /// Everywhere else.
    Plain,
}

impl Colour {
    /// What standard output takes. On Windows this turns a console's colours on.
    pub(crate) fn of_stdout() -> Colour {
        let wanted = std::io::stdout().is_terminal()
            && !anstyle_query::no_color()
            && anstyle_query::term_supports_ansi_color()
            && anstyle_query::windows::enable_ansi_colors() != Some(false);
        if wanted { Colour::Shown } else { Colour::Plain }
    }
}

/// How wide the verdicts' and the subjects' columns are.
const VERDICT_WIDTH: usize = "not checked".len();
const SUBJECT_WIDTH: usize = "kubelet-directory".len();

/// The report for people: a line a check, its advice below it, and the sum.
pub(crate) fn text(checks: &[Check], colour: Colour) -> String {
    let mut text = String::new();
    for check in checks {
        // Writing to a String cannot fail, here and below.
        let _ = line(&mut text, check, colour);
    }
    let counts = Counts::of(checks);
    let _ = writeln!(
        text,
        "\n{}, {}, {} ok, {} not checked",
        some(counts.problem, "problem"),
        some(counts.warning, "warning"),
        counts.ok,
        counts.not_checked
    );
    text
}

fn line(text: &mut String, check: &Check, colour: Colour) -> std::fmt::Result {
    let (start, end) = match colour {
        Colour::Shown => (style(check.verdict), "\x1b[0m"),
        Colour::Plain => ("", ""),
    };
    let Check { subject, verdict, what, .. } = check;
    write!(text, "{start}{:VERDICT_WIDTH$}{end}  {subject:SUBJECT_WIDTH$}  ", verdict.words())?;
    if let Some(object) = &check.object {
        write!(text, "{object}: ")?;
    }
    writeln!(text, "{what}")?;
    if let Some(advice) = &check.advice {
        let indent = VERDICT_WIDTH + SUBJECT_WIDTH + 4;
        writeln!(text, "{:indent$}-> {advice}", "")?;
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

fn some(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// The report for programs.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    counts: Counts,
    checks: Vec<CheckView<'a>>,
}

/// How many checks there are of each verdict.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    /// Problems.
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
    /// Counts.
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
    use crate::doctor::check::Subject;

    #[test]
    fn colour_changes_nothing_but_colour() {
        let checks = [
            Subject::Windows.ok("a"),
            Subject::Device.problem("b", "c").of("d"),
            Subject::Hcs.warning("e", "f"),
            Subject::Nvml.not_checked("g"),
        ];
        let plain = text(&checks, Colour::Plain);
        let mut coloured = text(&checks, Colour::Shown);
        assert_ne!(coloured, plain);
        for verdict in Verdict::ALL {
            assert!(coloured.contains(style(verdict)), "{verdict:?}");
            coloured = coloured.replace(style(verdict), "");
        }
        assert_eq!(coloured.replace("\x1b[0m", ""), plain);
        assert!(plain.ends_with("\n1 problem, 1 warning, 1 ok, 1 not checked\n"), "{plain}");
    }

    #[test]
    fn every_subject_and_verdict_fits_its_column() {
        assert!(Subject::ALL.iter().all(|subject| subject.name().len() <= SUBJECT_WIDTH));
        assert!(Verdict::ALL.iter().all(|verdict| verdict.words().len() <= VERDICT_WIDTH));
    }
}
