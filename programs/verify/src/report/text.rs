//! The report for people.

use std::fmt::Write as _;

use devices::printable::{printable, printable_lines};

use super::contents::Contents;
use crate::step::{Finding, Measurement, Value};

/// The widths of the columns for results and steps.
const OUTCOME_WIDTH: usize = "warning".len();
const STEP_WIDTH: usize = "discovery".len();

pub(super) fn text(report: &Contents) -> String {
    let mut text = String::new();
    for (name, version) in report.versions.rows() {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "{name:22}{}", printable(version));
    }
    for device in &report.devices {
        let _ = writeln!(
            text,
            "{:22}{}, driver {}, {}",
            "device",
            printable(&device.description),
            device.driver,
            device.health
        );
    }
    text.push('\n');
    for finding in &report.findings {
        let _ = write_finding(&mut text, finding);
    }
    let _ = writeln!(text, "\n{}", report.counts());
    text
}

fn write_finding(text: &mut String, finding: &Finding) -> std::fmt::Result {
    let (outcome, step) = (finding.outcome.name(), finding.step.name());
    let object = finding.object.as_ref().map(|object| format!("{object}: ")).unwrap_or_default();
    writeln!(text, "{outcome:OUTCOME_WIDTH$}  {step:STEP_WIDTH$}  {object}{}", finding.what)?;
    let indent = OUTCOME_WIDTH + STEP_WIDTH + 4;
    if !finding.measurements.is_empty() {
        let measured: Vec<String> = finding.measurements.iter().map(measurement).collect();
        writeln!(text, "{:indent$}{}", "", measured.join(" "))?;
    }
    for detail in &finding.details {
        // The output of a program, or a command line, which may be long.
        let line = detail.replace('\n', " ");
        writeln!(text, "{:indent$}{}", "", printable_lines(&line))?;
    }
    if let Some(hint) = &finding.hint {
        writeln!(text, "{:indent$}-> {hint}", "")?;
    }
    Ok(())
}

/// `connectMs=0.123`.
pub(super) fn measurement(measurement: &Measurement) -> String {
    match measurement.value {
        Value::Time(time) => format!("{}={:.3}", measurement.key, time.as_secs_f64() * 1000.0),
        Value::Count(count) => format!("{}={count}", measurement.key),
    }
}
