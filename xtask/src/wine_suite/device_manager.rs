//! The Windows program and the kubelet's own device manager, built for Windows.
//!
//! `testing/kubelet_suite` contains the tests. Those that connect the two need `AF_UNIX`
//! sockets, which Wine 10 does not have. They run if the Wine in use has them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::programs::{Programs, stdout};
use super::test_case::TestCase;
use crate::kubelet_suite::{self, PROGRAM_VARIABLE};
use crate::prerequisites;
use crate::process::{last_lines, output_within};
use crate::wine::windows_path;
use crate::workspace;

/// Longer than all tests take on a slow machine.
const DEADLINE: Duration = Duration::from_secs(15 * 60);

/// The test that needs no socket. Wine delivers no Ctrl-Break, so the plugin is killed.
const WITHOUT_SOCKETS: &str = "^TestPluginStopsWithoutAKubelet$/^killed$";

/// Builds the Go tests for Windows, and returns them as two tests.
pub(super) fn tests() -> Result<Vec<TestCase>> {
    prerequisites::require_go("the kubelet's device manager", "1.26")?;
    let program = kubelet_suite::windows_program()?;
    let all = program.clone();
    Ok(vec![
        TestCase::new("device manager: no kubelet", move |programs| {
            run(programs, &program, WITHOUT_SOCKETS)
        }),
        TestCase::new("device manager: AF_UNIX sockets", move |programs| run(programs, &all, "."))
            .needs_sockets(),
    ])
}

/// Whether Windows programs have `AF_UNIX` sockets in this Wine.
pub(super) fn has_sockets(programs: &Programs) -> Result<bool> {
    let bed = workspace::windows_build("wine_bed.exe");
    let answer = stdout(programs.host.command(&bed).arg("has-unix-sockets"))?;
    answer.trim().parse().with_context(|| format!("wine_bed does not know: {answer}"))
}

/// Runs the Go tests whose names match `pattern`, in their folder, as `go test` does.
fn run(programs: &Programs, program: &Path, pattern: &str) -> Result<()> {
    let plugin: PathBuf = workspace::windows_build("directx-device-plugin.exe");
    let mut tests = programs.host.command(program);
    tests.current_dir(kubelet_suite::folder()).env(PROGRAM_VARIABLE, windows_path(&plugin));
    tests.args(["-test.v", "-test.timeout=14m", "-test.run", pattern]);
    let result = output_within(DEADLINE, &mut tests)?;
    let text = [result.stdout, result.stderr].concat();
    let has_run = String::from_utf8_lossy(&text).contains("--- PASS: ");
    if !result.status.success() || !has_run {
        bail!("the tests failed with {}:\n{}", result.status, last_lines(&text, 60));
    }
    Ok(())
}
