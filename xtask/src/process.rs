//! Runs other programs and reports their failures.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs `command` with this program's output; an error unless it exits 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", line(command)))?;
    ensure!(status.success(), "{} failed with {status}", line(command));
    Ok(())
}

/// What `command` writes to standard output, or `None` if it cannot be started or fails.
pub(crate) fn stdout(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it, for messages.
pub(crate) fn line(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    format!("`{}`", words.join(" "))
}
