//! Running other programs and saying what went wrong with them.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `command` with this program's output; an error unless it exits 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", line(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", line(command));
    }
    Ok(())
}

/// Runs `command` with its output in the file `log`, whose end is shown if it fails.
pub(crate) fn run_logged(command: &mut Command, log: &Path) -> Result<()> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    run(command).inspect_err(|_| {
        let text = std::fs::read(log).unwrap_or_default();
        eprintln!("the end of {}:\n{}", log.display(), last_lines(&text, 15));
    })
}

/// What `command` writes to its standard output, or `None` where it cannot be
/// started or fails.
pub(crate) fn answer(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it, for messages; scripts are left out.
pub(crate) fn line(command: &Command) -> String {
    let words: Vec<_> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .map(|word| if word.contains('\n') { "…".into() } else { word })
        .collect();
    format!("`{}`", words.join(" "))
}

/// The last `count` lines of `text`.
pub(crate) fn last_lines(text: &[u8], count: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_named_with_its_status() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert!(error.contains("`sh -c exit 3`") && error.contains('3'), "{error}");
        let error = run(&mut Command::new("/nonexistent/tool")).unwrap_err();
        assert!(format!("{error:#}").starts_with("cannot run `/nonexistent/tool`"), "{error:#}");
        assert_eq!(line(Command::new("sh").args(["-c", "a\nb", "c"])), "`sh -c … c`");
    }

    #[test]
    fn the_last_lines_are_the_last() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines(b"a\n", 9), "a");
        assert_eq!(last_lines(b"", 9), "");
    }
}
