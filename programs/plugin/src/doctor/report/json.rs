//! The report for programs.

use node::cli::{Failure, print_json};
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::summary::{DEVICE, devices, versions};
use super::{Names, OUTCOMES, Report, counts, name};
use crate::doctor::finding::{Finding, Value};

/// The keys of counts, and the verdicts, of what was looked at.
const COUNTS: Names = ["problem", "warning", "ok", "notChecked"];
const VERDICTS: Names = ["problem", "warning", "ok", "not-checked"];

/// Names and their values, as one object in this order.
struct Object(Vec<(&'static str, Json)>);

impl Object {
    fn of<V: Serialize>(values: impl IntoIterator<Item = (&'static str, V)>) -> Object {
        Object(values.into_iter().map(|(name, value)| (name, json!(value))).collect())
    }
}

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
    versions: Object,
    devices: Vec<Object>,
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
        let counts = Object::of(counts(&report.checks, COUNTS));
        return print_json(&Looked { counts, checks });
    };
    let versions = versions(&report.snapshot);
    let devices = devices(&report.snapshot).into_iter();
    print_json(&Tried {
        counts: Object::of(counts(steps, OUTCOMES)),
        interrupted: report.interrupted,
        versions: Object::of(versions.map(|(key, _, version)| (key, version))),
        devices: devices.map(|device| Object::of(DEVICE.into_iter().zip(device))).collect(),
        steps: steps.iter().map(step).collect(),
        doctor: checks,
    })
}

fn check(finding: &Finding) -> Check<'_> {
    Check {
        subject: finding.subject.0,
        object: finding.object.as_deref(),
        verdict: name(VERDICTS, finding.status),
        what: &finding.what,
        advice: finding.hint.as_deref(),
    }
}

fn step(finding: &Finding) -> Outcome<'_> {
    let measurements = finding.measurements.iter().map(|(key, value)| match value {
        // Milliseconds with three decimals.
        Value::Time(time) => (*key, json!((time.as_secs_f64() * 1_000_000.0).round() / 1000.0)),
        Value::Count(count) => (*key, json!(count)),
    });
    Outcome {
        step: finding.subject.0,
        object: finding.object.as_deref(),
        result: name(OUTCOMES, finding.status),
        what: &finding.what,
        measurements: Object::of(measurements),
        details: &finding.details,
        hint: finding.hint.as_deref(),
    }
}
