//! The report for programs.

use serde_json::{Value, json};

use super::Report;
use super::summary::{DEVICE, devices, versions};
use crate::finding::{Finding, counts};

pub(super) fn document(report: &Report) -> Value {
    let checks: Value = report.checks.iter().map(check).collect();
    let Some(steps) = &report.steps else {
        let counts = named(["problem", "warning", "ok", "notChecked"], counts(&report.checks));
        return json!({"counts": counts, "checks": checks});
    };
    let versions = versions(&report.snapshot).map(|(key, _, version)| (key, version));
    let devices = devices(&report.snapshot).into_iter().map(|values| named(DEVICE, values));
    json!({
        "counts": named(["failed", "warning", "ok", "skipped"], counts(steps)),
        "interrupted": report.interrupted,
        "versions": versions.into_iter().collect::<Value>(),
        "devices": devices.collect::<Value>(),
        "steps": steps.iter().map(step).collect::<Value>(),
        "doctor": checks,
    })
}

fn named<const N: usize>(keys: [&str; N], values: [impl Into<Value>; N]) -> Value {
    keys.into_iter().zip(values).collect()
}

fn check(finding: &Finding) -> Value {
    json!({
        "subject": finding.name,
        "id": finding.id,
        "object": finding.object,
        "verdict": finding.status.verdict().replace(' ', "-"),
        "what": finding.what,
        "advice": finding.hint,
    })
}

fn step(finding: &Finding) -> Value {
    json!({
        "step": finding.name,
        "object": finding.object,
        "result": finding.status.result(),
        "what": finding.what,
        "measurements": finding.measurements.iter().cloned().collect::<Value>(),
        "details": finding.details,
        "hint": finding.hint,
    })
}
