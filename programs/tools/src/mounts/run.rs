//! Running a front end in this program's terminal.

use std::io;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::anyhow;
use cli::Failure;

use super::frontend::Frontend;
use super::shell;
use crate::notes;

/// Runs `<front end> run --rm <flags> <free arguments>` and passes its exit code on.
pub(super) fn run(
    frontend: Frontend,
    flags: &[String],
    free: &[String],
) -> Result<ExitCode, Failure> {
    let program = frontend.program();
    let first = ["run", "--rm"].map(str::to_owned);
    let arguments: Vec<&str> = first.iter().chain(flags).chain(free).map(String::as_str).collect();
    // Standard output belongs to the container.
    notes::line(&format!("{program} {}", shell::display(arguments.iter().copied())));
    // Ctrl+C reaches the container's terminal as well, and that one decides.
    ctrlc::set_handler(|| {}).map_err(Failure::at_work)?;
    let status = Command::new(program).args(&arguments).status();
    status.map_or_else(|error| Err(not_run(program, error)), |status| Ok(passed_on(status)))
}

fn not_run(program: &str, error: io::Error) -> Failure {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let failure = Failure::at_work(anyhow!(error).context(format!("cannot run `{program}`")));
    if missing {
        return failure.hint(format!("install `{program}`, or put its folder on the PATH"));
    }
    failure
}

/// The exit code of a program as that of this one; on Unix, 128 and the signal that
/// ended it, as shells say it.
fn passed_on(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let code = {
        use std::os::unix::process::ExitStatusExt as _;
        status.code().or_else(|| status.signal().map(|signal| 128 + signal))
    };
    #[cfg(not(unix))]
    let code = status.code();
    let code = code.unwrap_or(1);
    match u8::try_from(code) {
        Ok(code) => ExitCode::from(code),
        // Windows has 32 bits for it, and `ExitCode` has eight.
        Err(_) => std::process::exit(code),
    }
}
