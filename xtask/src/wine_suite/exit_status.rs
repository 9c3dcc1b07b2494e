//! A program that prints an error exits with the status of the error.

use anyhow::{Result, ensure};

use super::programs::{Programs, output};
use super::test_case::TestCase;

/// The tests, by name.
pub(super) fn tests() -> Vec<TestCase> {
    vec![TestCase::new("exit status: of an error, each time", of_an_error)]
}

/// Wine loses the status of a process if one of its threads ends at the same moment. Without
/// waiting for the thread that reads the file and the thread that prints the error, this happened
/// in every eighth run.
fn of_an_error(programs: &Programs) -> Result<()> {
    const RUNS: u32 = 25;
    const WRONG_USAGE: i32 = 2;
    for run in 1..=RUNS {
        let result = output(&mut programs.windows(&["devices", "--inventory", "missing.yaml"]))?;
        let status = result.status.code();
        ensure!(status == Some(WRONG_USAGE), "run {run}: {}", result.status);
    }
    Ok(())
}
