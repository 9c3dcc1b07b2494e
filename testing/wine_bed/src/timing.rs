//! How long programs take from their start to their end, measured on Windows itself.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// Runs a program `count` times, one after the other, and prints the microseconds of each
/// run.
pub(crate) fn print_times(count: &str, program: &str, arguments: &[&str]) -> Result<()> {
    for _ in 0..count.parse::<u32>()? {
        let start = Instant::now();
        let status = Command::new(program).args(arguments).status();
        let elapsed = start.elapsed();
        let status = status.with_context(|| format!("cannot run {program}"))?;
        ensure!(status.success(), "{program} failed with {status}");
        println!("{}", elapsed.as_micros());
    }
    Ok(())
}
