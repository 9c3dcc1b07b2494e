//! The report for programs.

use serde::{Serialize, Serializer};
use serde_json::json;

use super::node::{DeviceSummary, Versions};
use super::{Report, outcome, verdict};
use crate::finding::{Finding, Measurement, Status, Value, count};

/// The document about what was looked at, and about what was tried.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Document<'r> {
    Looked {
        counts: Counts,
        checks: Vec<Check<'r>>,
    },
    Tried {
        counts: Outcomes,
        interrupted: bool,
        versions: &'r Versions,
        devices: &'r [DeviceSummary],
        steps: Vec<Step<'r>>,
        doctor: Vec<Check<'r>>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    problem: usize,
    warning: usize,
    ok: usize,
    not_checked: usize,
}

#[derive(Serialize)]
pub(super) struct Outcomes {
    failed: usize,
    warning: usize,
    ok: usize,
    skipped: usize,
}

#[derive(Serialize)]
pub(super) struct Check<'r> {
    subject: &'r str,
    object: Option<&'r str>,
    verdict: String,
    what: &'r str,
    advice: Option<&'r str>,
}

#[derive(Serialize)]
pub(super) struct Step<'r> {
    #[serde(rename = "step")]
    name: &'r str,
    object: Option<&'r str>,
    result: &'r str,
    what: &'r str,
    #[serde(serialize_with = "measurements")]
    measurements: &'r [Measurement],
    details: &'r [String],
    hint: Option<&'r str>,
}

pub(super) fn document(report: &Report) -> Document<'_> {
    let checks: Vec<_> = report.checks.iter().map(Check::of).collect();
    let Some(steps) = &report.steps else {
        let count = |status| count(&report.checks, status);
        let counts = Counts {
            problem: count(Status::Failed),
            warning: count(Status::Warning),
            ok: count(Status::Ok),
            not_checked: count(Status::Skipped),
        };
        return Document::Looked { counts, checks };
    };
    let count = |status| count(steps, status);
    Document::Tried {
        counts: Outcomes {
            failed: count(Status::Failed),
            warning: count(Status::Warning),
            ok: count(Status::Ok),
            skipped: count(Status::Skipped),
        },
        interrupted: report.interrupted,
        versions: &report.versions,
        devices: &report.devices,
        steps: steps.iter().map(Step::of).collect(),
        doctor: checks,
    }
}

impl Check<'_> {
    fn of(finding: &Finding) -> Check<'_> {
        Check {
            subject: finding.subject.0,
            object: finding.object.as_deref(),
            verdict: verdict(finding.status).replace(' ', "-"),
            what: &finding.what,
            advice: finding.hint.as_deref(),
        }
    }
}

impl Step<'_> {
    fn of(finding: &Finding) -> Step<'_> {
        Step {
            name: finding.subject.0,
            object: finding.object.as_deref(),
            result: outcome(finding.status),
            what: &finding.what,
            measurements: &finding.measurements,
            details: &finding.details,
            hint: finding.hint.as_deref(),
        }
    }
}

/// As one object. Times are milliseconds with three decimals.
fn measurements<S: Serializer>(list: &&[Measurement], serializer: S) -> Result<S::Ok, S::Error> {
    let number = |value: Value| match value {
        Value::Time(time) => json!((time.as_secs_f64() * 1_000_000.0).round() / 1000.0),
        Value::Count(count) => json!(count),
    };
    serializer.collect_map(list.iter().map(|(key, value)| (key, number(*value))))
}
