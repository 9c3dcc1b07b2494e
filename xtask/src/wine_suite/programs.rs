//! The plugin's programs, for Windows on a bed and for this machine.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Bed;
use crate::process::{line, run};
use crate::workspace::{self, cargo};

/// Longer than any program here takes on a slow machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);

/// The packages whose programs the suite runs.
const PACKAGES: [&str; 2] = ["--package", "plugin"];

pub(crate) struct Programs<'a> {
    pub(crate) bed: Bed<'a>,
}

impl<'a> Programs<'a> {
    pub(super) fn build(bed: Bed<'a>) -> Result<Programs<'a>> {
        run(cargo().args(["build", "--quiet"]).args(PACKAGES))?;
        let target = ["--target", workspace::WINDOWS_TARGET];
        run(cargo().args(["build", "--quiet"]).args(PACKAGES).args(target))?;
        Ok(Programs { bed })
    }

    /// `directx-device-plugin` for Windows, on the bed.
    pub(super) fn windows(&self, arguments: &[&str]) -> Command {
        let mut command = self.bed.command(&workspace::windows_build("directx-device-plugin.exe"));
        command.args(arguments);
        command
    }
}

/// `directx-device-plugin` for this machine, on `inventory`.
pub(super) fn here(arguments: &[&str], inventory: &Path) -> Command {
    let mut command = Command::new(workspace::own_build("directx-device-plugin"));
    command.args(arguments).arg("--inventory").arg(inventory);
    command
}

/// What `command` writes to its standard output; an error unless it exits 0.
pub(super) fn stdout(command: &mut Command) -> Result<String> {
    let result = output(command, DEADLINE)?;
    if !result.status.success() {
        let text = String::from_utf8_lossy(&result.stderr);
        bail!("{} ended with {}:\n{text}", line(command), result.status);
    }
    Ok(String::from_utf8_lossy(&result.stdout).replace("\r\n", "\n"))
}

/// Runs `command` to its end, and ends it when `time` is over.
pub(super) fn output(command: &mut Command, time: Duration) -> Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {}", line(command)))?;
    let stdout = collect(child.stdout.take().expect("standard output is piped"));
    let stderr = collect(child.stderr.take().expect("standard error is piped"));
    let end = Instant::now() + time;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            bail!("{} had not ended after {} s", line(command), time.as_secs());
        }
        thread::sleep(Duration::from_millis(5));
    };
    let join = |handle: thread::JoinHandle<Vec<u8>>| handle.join().unwrap_or_default();
    Ok(Output { status, stdout: join(stdout), stderr: join(stderr) })
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is what there is.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// An error that shows where `found` departs from `expected`.
pub(super) fn same(expected: &str, found: &str) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let mut lines = expected.lines().zip(found.lines()).enumerate();
    let number = lines
        .find(|(_, (expected, found))| expected != found)
        .map_or(expected.lines().count().min(found.lines().count()), |(number, _)| number);
    let around = |text: &str| -> String {
        let lines: Vec<&str> = text.lines().skip(number.saturating_sub(3)).take(10).collect();
        format!("    {}\n", lines.join("\n    "))
    };
    bail!("from line {} on, expected\n{}found\n{}", number + 1, around(expected), around(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        assert!(same("a\nb\n", "a\nb\n").is_ok());
        let error = same("a\nb\nc\n", "a\nx\nc\n").unwrap_err().to_string();
        assert!(error.starts_with("from line 2 on"), "{error}");
        let error = same("a\n", "a\nb\n").unwrap_err().to_string();
        assert!(error.starts_with("from line 2 on"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let error = output(Command::new("sleep").arg("60"), Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("`sleep 60` had not ended"), "{error}");
    }
}
