//! The report for programs.

use serde_json::{Value, json};

use super::Report;
use super::summary::{DEVICE, devices, versions};
use crate::finding::{Finding, Status, count};

pub(super) fn document(report: &Report) -> Value {
    let checks: Value = report.checks.iter().map(check).collect();
    let Some(steps) = &report.steps else {
        let counts = json!({
            "problem": count(&report.checks, Status::Failed),
            "warning": count(&report.checks, Status::Warning),
            "ok": count(&report.checks, Status::Ok),
            "notChecked": count(&report.checks, Status::Skipped),
        });
        return json!({"counts": counts, "checks": checks});
    };
    let statuses = [Status::Failed, Status::Warning, Status::Ok, Status::Skipped];
    let counts = statuses.map(|status| (status.result(), count(steps, status)));
    let versions = versions(&report.snapshot).map(|(key, _, version)| (key, version));
    json!({
        "counts": counts.into_iter().collect::<Value>(),
        "interrupted": report.interrupted,
        "versions": versions.into_iter().collect::<Value>(),
        "devices": devices(&report.snapshot).into_iter().map(device).collect::<Value>(),
        "steps": steps.iter().map(step).collect::<Value>(),
        "doctor": checks,
    })
}

fn device(values: [String; 5]) -> Value {
    DEVICE.into_iter().zip(values).collect()
}

fn check(finding: &Finding) -> Value {
    json!({
        "subject": finding.subject.0,
        "object": finding.object,
        "verdict": finding.status.verdict().replace(' ', "-"),
        "what": finding.what,
        "advice": finding.hint,
    })
}

fn step(finding: &Finding) -> Value {
    json!({
        "step": finding.subject.0,
        "object": finding.object,
        "result": finding.status.result(),
        "what": finding.what,
        "measurements": finding.measurements.iter().cloned().collect::<Value>(),
        "details": finding.details,
        "hint": finding.hint,
    })
}
