//! Runs other programs and reports their failures.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// How many of the last lines of a program that failed are printed.
const LAST_LINES: usize = 15;

/// The pauses between attempts to download something.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(15)];

/// Says what takes time now.
pub(crate) fn stage(text: &str) {
    eprintln!("==> {text}");
}

/// Runs `command` with this program's output; an error unless it exits 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", line(command)))?;
    ensure!(status.success(), "{} failed with {status}", line(command));
    Ok(())
}

/// Runs `command` without its output; if it fails, the error has the last lines.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    let result = command.stdin(Stdio::null()).output();
    let output = result.with_context(|| format!("cannot run {}", line(command)))?;
    if output.status.success() {
        return Ok(());
    }
    let bytes = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ");
    bail!("{} failed with {}\n  {last}", line(command), output.status)
}

/// Like [`run_quietly`], but repeats a failed program, for programs that download.
pub(crate) fn download(command: &mut Command) -> Result<()> {
    for pause in PAUSES {
        let Err(error) = run_quietly(command) else {
            return Ok(());
        };
        eprintln!("trying again in {} s: {error:#}", pause.as_secs());
        thread::sleep(pause);
    }
    run_quietly(command)
}

/// What `command` writes to standard output, or `None` if it cannot be started or fails.
pub(crate) fn stdout(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it, for messages.
pub(crate) fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(OsStr::to_string_lossy));
    format!("`{}`", words.join(" "))
}
