//! The report for programs.

use serde::{Serialize, Serializer};

use super::contents::Contents;
use super::node::Versions;
use crate::step::{Finding, Measurement, Outcome, Value};

/// The JSON document.
#[derive(Serialize)]
pub(super) struct Document<'r> {
    counts: Counts,
    interrupted: bool,
    versions: VersionsView<'r>,
    devices: Vec<DeviceView<'r>>,
    steps: Vec<StepView<'r>>,
    doctor: Vec<CheckView<'r>>,
}

#[derive(Serialize)]
struct Counts {
    failed: usize,
    warning: usize,
    ok: usize,
    skipped: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionsView<'r> {
    program: &'r str,
    windows: &'r str,
    build: &'r str,
    hcs_schemas: &'r str,
    containerd: &'r str,
    kubelet: &'r str,
}

#[derive(Serialize)]
struct DeviceView<'r> {
    description: &'r str,
    hardware: &'r str,
    driver: &'r str,
    supports: &'r str,
    health: &'r str,
}

#[derive(Serialize)]
struct StepView<'r> {
    step: &'static str,
    object: Option<&'r str>,
    result: &'static str,
    what: &'r str,
    #[serde(serialize_with = "measurements")]
    measurements: &'r [Measurement],
    details: &'r [String],
    hint: Option<&'r str>,
}

#[derive(Serialize)]
struct CheckView<'r> {
    subject: &'r str,
    object: Option<&'r str>,
    verdict: &'r str,
    what: &'r str,
    advice: Option<&'r str>,
}

impl Document<'_> {
    pub(super) fn of(report: &Contents) -> Document<'_> {
        let checks = report.checks.iter();
        let devices = report.devices.iter();
        Document {
            counts: Counts {
                failed: report.count(Outcome::Failed),
                warning: report.count(Outcome::Warning),
                ok: report.count(Outcome::Ok),
                skipped: report.count(Outcome::Skipped),
            },
            interrupted: report.interrupted,
            versions: VersionsView::of(&report.versions),
            devices: devices
                .map(|device| DeviceView {
                    description: &device.description,
                    hardware: &device.hardware,
                    driver: &device.driver,
                    supports: device.supports,
                    health: &device.health,
                })
                .collect(),
            steps: report.findings.iter().map(StepView::of).collect(),
            doctor: checks
                .map(|check| CheckView {
                    subject: check.subject.name(),
                    object: check.object.as_deref(),
                    verdict: check.verdict.key(),
                    what: &check.what,
                    advice: check.advice.as_deref(),
                })
                .collect(),
        }
    }
}

impl VersionsView<'_> {
    fn of(versions: &Versions) -> VersionsView<'_> {
        VersionsView {
            program: versions.program,
            windows: &versions.windows,
            build: &versions.build,
            hcs_schemas: &versions.hcs_schemas,
            containerd: &versions.containerd,
            kubelet: &versions.kubelet,
        }
    }
}

impl StepView<'_> {
    fn of(finding: &Finding) -> StepView<'_> {
        StepView {
            step: finding.step.name(),
            object: finding.object.as_deref(),
            result: finding.outcome.name(),
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
        Value::Time(time) => {
            serde_json::json!((time.as_secs_f64() * 1_000_000.0).round() / 1000.0)
        }
        Value::Count(count) => serde_json::json!(count),
    };
    serializer.collect_map(list.iter().map(|m| (m.key, number(m.value))))
}
