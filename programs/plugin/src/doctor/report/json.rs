//! The report for programs.

use serde::{Serialize, Serializer};
use serde_json::json;

use super::summary::{DeviceSummary, Versions};
use super::{Report, outcome, verdict};
use crate::doctor::finding::{Finding, Measurement, Status, Value, count};

/// The document about what was looked at, and about what was tried.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Document<'r> {
    Looked {
        counts: Counts<'r>,
        checks: Vec<Check<'r>>,
    },
    Tried {
        counts: Counts<'r>,
        interrupted: bool,
        versions: &'r Versions,
        devices: &'r [DeviceSummary],
        steps: Vec<Step<'r>>,
        doctor: Vec<Check<'r>>,
    },
}

/// The number of findings with each status, under its name.
pub(super) struct Counts<'r> {
    findings: &'r [Finding],
    names: [(&'static str, Status); 4],
}

const CHECKS: [(&str, Status); 4] = [
    ("problem", Status::Failed),
    ("warning", Status::Warning),
    ("ok", Status::Ok),
    ("notChecked", Status::Skipped),
];

const STEPS: [(&str, Status); 4] = [
    ("failed", Status::Failed),
    ("warning", Status::Warning),
    ("ok", Status::Ok),
    ("skipped", Status::Skipped),
];

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = self.names.iter().map(|(name, status)| (name, count(self.findings, *status)));
        serializer.collect_map(counts)
    }
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
        let counts = Counts { findings: &report.checks, names: CHECKS };
        return Document::Looked { counts, checks };
    };
    Document::Tried {
        counts: Counts { findings: steps, names: STEPS },
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
