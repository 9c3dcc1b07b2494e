//! Runs a front end in this program's terminal.

use std::io;
#[cfg(unix)]
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::anyhow;
use clap::ValueEnum as _;
use command_line::Failure;
use command_line::frontends::Frontend;

use super::quoting;
use crate::stderr;

/// Runs `<front end> run --rm <flags> <container arguments>` and returns its exit code.
pub(super) fn run(
    frontend: Frontend,
    flags: &[String],
    container: &[String],
) -> Result<ExitCode, Failure> {
    let value = frontend.to_possible_value().expect("every front end has a name");
    let program = value.get_name();
    let first = ["run", "--rm"].map(str::to_owned);
    let arguments: Vec<&str> =
        first.iter().chain(flags).chain(container).map(String::as_str).collect();
    // Standard output belongs to the container.
    stderr::line(&format!("{program} {}", quoting::display(arguments.iter().copied())));
    // Ctrl+C also reaches the front end, which decides what to do with it.
    ctrlc::set_handler(|| {}).map_err(Failure::runtime)?;
    let status = Command::new(program).args(&arguments).status();
    status.map_or_else(|error| Err(start_failure(program, error)), |status| Ok(exit_code(status)))
}

fn start_failure(program: &str, error: io::Error) -> Failure {
    let not_found = error.kind() == io::ErrorKind::NotFound;
    let failure = Failure::runtime(anyhow!(error).context(format!("cannot run `{program}`")));
    if not_found {
        return failure.hint(format!("install `{program}`, or add its folder to PATH"));
    }
    failure
}

/// The exit code of a finished program. On Unix, a program that a signal ended has the
/// exit code 128 plus the signal's number, as in shells.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| signal_code(status)).unwrap_or(1);
    match u8::try_from(code) {
        Ok(code) => ExitCode::from(code),
        // Exit codes have 32 bits on Windows; `ExitCode` has 8.
        Err(_) => std::process::exit(code),
    }
}

#[cfg(unix)]
fn signal_code(status: ExitStatus) -> Option<i32> {
    Some(128 + status.signal()?)
}

#[cfg(not(unix))]
fn signal_code(_status: ExitStatus) -> Option<i32> {
    None
}
