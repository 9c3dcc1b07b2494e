//! Commands of the program that end.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::log_reader::is_unprintable;
use crate::target::HANGS;

/// Runs a command of the program.
///
/// # Errors
/// The command hangs, is ended by a signal, or prints control characters.
pub(crate) fn run(program: &Path, arguments: &[&str]) -> Result<()> {
    let line = arguments.join(" ");
    let mut command = Command::new("timeout");
    command.arg(HANGS.as_secs().to_string()).arg(program).args(arguments);
    let output = command.output().context("cannot run `timeout`")?;
    let status = output.status;
    ensure!(status.code().is_some_and(|code| code <= 2), "`{line}` ended with {status}");
    let text = [output.stdout, output.stderr].concat();
    ensure_printable(&String::from_utf8_lossy(&text)).with_context(|| format!("`{line}`"))
}

/// Checks that only line breaks and spaces structure a text.
fn ensure_printable(text: &str) -> Result<()> {
    let bad = text.split('\n').find(|line| line.chars().any(is_unprintable));
    ensure!(bad.is_none(), "control characters in the output: {bad:?}");
    Ok(())
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
