//! Runs `gpu-probe` for Windows, and reads JSON reports.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::output_within;
use crate::workspace;

/// Seconds for one API, which takes less than one on an idle machine.
const TIME_LIMIT: &str = "120";

/// How long one run may take.
const DEADLINE: Duration = Duration::from_secs(600);

/// The program for Windows.
pub(super) fn program() -> PathBuf {
    workspace::windows_build("gpu-probe.exe")
}

/// Runs the `command` of the program with `arguments`: its exit status and its report.
pub(super) fn probe(mut command: Command, arguments: &[&str]) -> Result<(ExitStatus, Value)> {
    command.args(["--allow-software", "--output", "json", "--time-limit", TIME_LIMIT]);
    report(command.args(arguments))
}

/// The exit status of `command`, and the JSON that it prints.
pub(super) fn report(command: &mut Command) -> Result<(ExitStatus, Value)> {
    let output = output_within(DEADLINE, command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let document = serde_json::from_str(&text);
    let error = || format!("no report: {text}{}", String::from_utf8_lossy(&output.stderr));
    Ok((output.status, document.with_context(error)?))
}

/// What a report says of an API.
pub(super) fn row<'a>(report: &'a Value, api: &str) -> Result<&'a Value> {
    let mut rows = report["apis"].as_array().into_iter().flatten();
    rows.find(|row| row["api"] == api).with_context(|| format!("{api} is missing: {report:#}"))
}
