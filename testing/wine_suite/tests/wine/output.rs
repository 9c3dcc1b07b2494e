//! What programs print.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::paths::native_build;

/// Runs `command` to its end.
///
/// A program that meets a fault in Wine, which is printed, runs once more.
pub(crate) fn output(command: &mut Command) -> Output {
    let mut run = || command.stdin(Stdio::null()).output().expect("the script can be run");
    let result = run();
    let Some(fault) = fault_in_wine(&result) else {
        return result;
    };
    // This is not `eprintln!`, whose text the test harness hides when the test passes.
    let _ = writeln!(io::stderr(), "{fault}; run again");
    run()
}

/// A Windows program has no Unix signals: its own access violation is an exit status. Wine reports
/// its own broken connection as a `client error`, for example when a thread that Ctrl+C starts meets
/// the end of its process, which has closed the socket.
fn fault_in_wine(result: &Output) -> Option<String> {
    if result.status.code().is_none() {
        return Some(format!("Wine ended a program with {}", result.status));
    }
    let errors = text(&result.stderr);
    errors.lines().find(|line| line.starts_with("wine client error:")).map(str::to_owned)
}

/// What `command` writes to standard output; it must exit 0.
pub(crate) fn stdout(command: &mut Command) -> String {
    let result = output(command);
    let out = text(&result.stdout);
    let err = text(&result.stderr);
    assert!(result.status.success(), "{command:?} failed with {}:\n{out}{err}", result.status);
    out
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n")
}

/// A program for this machine, with `inventory`.
pub(crate) fn native(program: &str, arguments: &[&str], inventory: &Path) -> Command {
    let mut command = Command::new(native_build(program));
    // No line is broken.
    command.env("COLUMNS", "1000").args(arguments).arg("--inventory").arg(inventory);
    command
}

/// The program exits with `code`, prints `stdout`, and prints lines with each of `errors`.
#[track_caller]
pub(crate) fn expect(result: &Output, code: i32, stdout: &str, errors: &[&str]) {
    let out = text(&result.stdout);
    let err = text(&result.stderr);
    // Linux keeps the lower eight bits of an exit code.
    assert_eq!(result.status.code(), Some(code & 0xFF), "{out}{err}");
    assert_eq!(out, stdout, "{err}");
    assert!(errors.iter().all(|error| err.contains(error)), "lacks one of {errors:?}:\n{err}");
    assert!(!errors.is_empty() || err.is_empty(), "{err}");
}
