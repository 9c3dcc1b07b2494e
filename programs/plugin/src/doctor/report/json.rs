//! The report for programs.

use node::cli::{Failure, print_json};
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::summary::{DeviceSummary, Versions};
use super::{Report, STATUSES, outcome, verdict};
use crate::doctor::finding::{Finding, Status, Value, count};

/// Names and their values, as one object in this order.
struct Object(Vec<(&'static str, Json)>);

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// What was looked at.
#[derive(Serialize)]
struct Looked<'r> {
    counts: Object,
    checks: Vec<Check<'r>>,
}

/// What was tried, after what was looked at.
#[derive(Serialize)]
struct Tried<'r> {
    counts: Object,
    interrupted: bool,
    versions: Versions,
    devices: Vec<DeviceSummary>,
    steps: Vec<Outcome<'r>>,
    doctor: Vec<Check<'r>>,
}

#[derive(Serialize)]
struct Check<'r> {
    subject: &'r str,
    object: Option<&'r str>,
    verdict: &'r str,
    what: &'r str,
    advice: Option<&'r str>,
}

#[derive(Serialize)]
struct Outcome<'r> {
    step: &'r str,
    object: Option<&'r str>,
    result: &'r str,
    what: &'r str,
    measurements: Object,
    details: &'r [String],
    hint: Option<&'r str>,
}

pub(super) fn print(report: &Report) -> Result<(), Failure> {
    let checks: Vec<_> = report.checks.iter().map(check).collect();
    let Some(steps) = &report.steps else {
        let counted = |status| match status {
            Status::Skipped => "notChecked",
            other => verdict(other),
        };
        return print_json(&Looked { counts: counts(&report.checks, counted), checks });
    };
    print_json(&Tried {
        counts: counts(steps, outcome),
        interrupted: report.interrupted,
        versions: Versions::of(&report.snapshot),
        devices: DeviceSummary::all(&report.snapshot),
        steps: steps.iter().map(step).collect(),
        doctor: checks,
    })
}

/// The number of findings with each status.
fn counts(findings: &[Finding], name: impl Fn(Status) -> &'static str) -> Object {
    let count = |status| (name(status), json!(count(findings, status)));
    Object(STATUSES.into_iter().map(count).collect())
}

fn check(finding: &Finding) -> Check<'_> {
    Check {
        subject: finding.subject.0,
        object: finding.object.as_deref(),
        verdict: match finding.status {
            Status::Skipped => "not-checked",
            other => verdict(other),
        },
        what: &finding.what,
        advice: finding.hint.as_deref(),
    }
}

fn step(finding: &Finding) -> Outcome<'_> {
    let number = |value| match value {
        // Milliseconds with three decimals.
        Value::Time(time) => json!((time.as_secs_f64() * 1_000_000.0).round() / 1000.0),
        Value::Count(count) => json!(count),
    };
    let measurements = finding.measurements.iter().map(|(key, value)| (*key, number(*value)));
    Outcome {
        step: finding.subject.0,
        object: finding.object.as_deref(),
        result: outcome(finding.status),
        what: &finding.what,
        measurements: Object(measurements.collect()),
        details: &finding.details,
        hint: finding.hint.as_deref(),
    }
}
