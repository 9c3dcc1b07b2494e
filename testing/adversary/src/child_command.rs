//! Commands of the program that end, with a time limit and their peak memory.

use std::fs::read_to_string;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::log_reader::is_unprintable;

/// How often the memory is read.
const INTERVAL: Duration = Duration::from_millis(2);

/// Runs a command of the program, and returns whether it succeeded.
///
/// # Errors
/// The command runs for longer than `limit`, is ended by a signal, occupies more than
/// `memory_mib`, or prints control characters.
pub(crate) fn run(
    program: &Path,
    arguments: &[&str],
    limit: Duration,
    memory_mib: f64,
) -> Result<bool> {
    let line = arguments.join(" ");
    // A file, because nobody reads a pipe while the command runs.
    let mut output = tempfile::tempfile().context("cannot create a temporary file")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
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
    output.rewind()?;
    let mut text = Vec::new();
    output.read_to_end(&mut text)?;
    ensure_printable(&String::from_utf8_lossy(&text)).with_context(|| format!("`{line}`"))?;
    Ok(code == 0)
}

/// Checks that only line breaks and spaces structure a text.
fn ensure_printable(text: &str) -> Result<()> {
    let bad = text.split('\n').find(|line| line.chars().any(is_unprintable));
    ensure!(bad.is_none(), "control characters in the output: {bad:?}");
    Ok(())
}

fn peak_mib(process: u32) -> Option<f64> {
    let status = read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(f64::from(kib) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_has_no_control_characters() {
        ensure_printable("a  b\nc \\u{1b}\n").unwrap();
        for bad in ["a\x1b[31m", "a\rb", "a\u{202e}"] {
            assert!(ensure_printable(bad).is_err(), "{bad:?}");
        }
    }
}
