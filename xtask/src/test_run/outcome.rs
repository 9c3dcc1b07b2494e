//! What came of each step, and the report at the end of a run.

use std::fmt::Write;
use std::time::Duration;

use crate::skipped_part::SkippedPart;

/// A step that has run or was skipped.
pub(super) struct Outcome {
    pub(super) step: &'static str,
    pub(super) time: Duration,
    pub(super) verdict: Verdict,
}

pub(super) enum Verdict {
    /// Everything passed except these parts, which did not run.
    Passed(Vec<SkippedPart>),
    Failed(anyhow::Error),
    /// The step does not run on this machine, for this reason.
    Skipped(&'static str),
}

impl Verdict {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Verdict::Passed(_) => "ok",
            Verdict::Failed(_) => "FAILED",
            Verdict::Skipped(_) => "skipped",
        }
    }

    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Verdict::Failed(_))
    }
}

/// A line for each step and for each part that was skipped, then the totals.
pub(super) fn report(outcomes: &[Outcome], total: Duration) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let remark = match &outcome.verdict {
            Verdict::Skipped(reason) => (*reason).to_owned(),
            Verdict::Passed(_) | Verdict::Failed(_) => format!("{:>6}", clock(outcome.time)),
        };
        line(&mut text, outcome.verdict.word(), outcome.step, &remark);
        if let Verdict::Passed(skipped) = &outcome.verdict {
            for SkippedPart { part, reason } in skipped {
                line(&mut text, "skipped", outcome.step, &format!("{part}: {reason}"));
            }
        }
    }
    let count = |word: &str| outcomes.iter().filter(|o| o.verdict.word() == word).count();
    let [passed, failed, skipped] = ["ok", "FAILED", "skipped"].map(count);
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    text + &format!("{passed} passed, {failed} failed{skipped} in {}\n", clock(total))
}

fn line(text: &mut String, verdict: &str, step: &str, remark: &str) {
    writeln!(text, "{verdict:<7} {step:<15} {remark}").expect("a text can always be extended");
}

/// Minutes and seconds, such as `2:05`.
pub(super) fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(step: &'static str, seconds: u64, verdict: Verdict) -> Outcome {
        Outcome { step, time: Duration::from_secs(seconds), verdict }
    }

    #[test]
    fn times_are_minutes_and_seconds() {
        assert_eq!(clock(Duration::from_millis(5_999)), "0:05");
        assert_eq!(clock(Duration::from_secs(754)), "12:34");
    }

    #[test]
    fn what_is_skipped_is_never_ok() {
        let part = SkippedPart::new("kubelet 1.19", "no device manager");
        let outcomes = [
            outcome("fmt", 5, Verdict::Passed(Vec::new())),
            outcome("kubelet", 61, Verdict::Passed(vec![part])),
            outcome("deny", 1, Verdict::Failed(anyhow::anyhow!("no network"))),
            outcome("wine", 0, Verdict::Skipped("only on Linux")),
        ];
        let expected = "ok      fmt               0:05\n\
                        ok      kubelet           1:01\n\
                        skipped kubelet         kubelet 1.19: no device manager\n\
                        FAILED  deny              0:01\n\
                        skipped wine            only on Linux\n\
                        2 passed, 1 failed, 1 skipped in 1:07\n";
        assert_eq!(report(&outcomes, Duration::from_secs(67)), expected);
        let all_run = report(&outcomes[..1], Duration::ZERO);
        assert!(all_run.ends_with("\n1 passed, 0 failed in 0:00\n"), "{all_run}");
    }
}
