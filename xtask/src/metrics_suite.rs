//! Reads what the daemon exposes with Prometheus' own parsers.
//!
//! `testing/metrics_suite` contains the tests, in Go. They scrape a debug build, and read the
//! recorded texts of every metric.

use std::process::Command;

use anyhow::Result;

use crate::process::run;
use crate::workspace::{self, cargo};
use crate::{kubelet_suite, prerequisites};

/// Runs the Go tests.
pub(crate) fn check() -> Result<()> {
    prerequisites::require_go("Prometheus' parsers", "1.26")?;
    let folder = workspace::root().join("testing/metrics_suite");
    kubelet_suite::check_go_format(&folder)?;
    run(cargo().args(["build", "--quiet", "--package=plugin", "--bin=directx-device-plugin"]))?;
    let program = workspace::native_program("directx-device-plugin");
    let mut test = Command::new("go");
    test.current_dir(folder).env(kubelet_suite::PROGRAM_VARIABLE, program);
    run(test.args(["test", "-count=1", "-timeout=10m", "./..."]))
}
