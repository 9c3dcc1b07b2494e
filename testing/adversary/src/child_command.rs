//! Commands of the program that end, with a time limit and their peak memory.

use std::fs::read_to_string;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// How often the memory is read.
const INTERVAL: Duration = Duration::from_millis(2);

/// Runs a command of the program, discards its output, and returns whether it succeeded.
///
/// # Errors
/// The command runs for longer than `limit`, is ended by a signal, or occupies more than
/// `memory_mib`.
pub(crate) fn run(
    program: &Path,
    arguments: &[&str],
    limit: Duration,
    memory_mib: f64,
) -> Result<bool> {
    let line = arguments.join(" ");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run the program `{}`", program.display()))?;
    let start = Instant::now();
    let mut peak = 0.0_f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak = peak.max(peak_mib(child.id()).unwrap_or(0.0));
        if start.elapsed() > limit || peak > memory_mib {
            child.kill()?;
            child.wait()?;
            ensure!(peak <= memory_mib, "`{line}` occupies {peak:.0} MiB");
            anyhow::bail!("`{line}` does not end within {limit:?}");
        }
        sleep(INTERVAL);
    };
    let code = status.code().with_context(|| format!("`{line}` ended with {status}"))?;
    ensure!(code <= 2, "`{line}` ended with {status}");
    Ok(code == 0)
}

fn peak_mib(process: u32) -> Option<f64> {
    let status = read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(f64::from(kib) / 1024.0)
}
