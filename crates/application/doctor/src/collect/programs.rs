//! Programs of the node: where they are, and what they print when they are run.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use host::{Program, ProgramVersion};
use process::event_loop;
use tokio::process::Command;
use tokio::time::timeout;
use win32::ServiceCommand;

use crate::stop::Stop;

/// How long a program may take to print its version or configuration.
const RUN_LIMIT: Duration = Duration::from_secs(10);

/// Finds the program `name` and the version it prints for `--version`. Looks at the program of its
/// service, unless that is a wrapper with another name, then in `folders`, then in PATH.
pub(super) fn find(name: &str, service: Option<&ServiceCommand>, folders: &[PathBuf]) -> Program {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let of_service = service
        .map(|command| PathBuf::from(&command.program))
        .filter(|path| path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(&file)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders_and_path = folders.iter().cloned().chain(std::env::split_paths(&path));
    let mut candidates =
        of_service.into_iter().chain(folders_and_path.map(|folder| folder.join(&file)));
    let Some(found) = candidates.find(|path| path.is_file()) else {
        let folders = folders.iter().map(|folder| folder.display().to_string());
        let service = format!("the service `{name}`");
        return Program::NotFound(
            [service].into_iter().chain(folders).chain(["PATH".to_owned()]).collect(),
        );
    };
    let version = stdout_of(&found, &["--version"]).and_then(|text| {
        ProgramVersion::find(&text)
            .ok_or_else(|| format!("no version in its output `{}`", first_line(&text)))
    });
    Program::Found { path: found.display().to_string(), version }
}

/// What a program writes to standard output; the text of an error if it cannot be run,
/// fails, or takes too long.
pub(super) fn stdout_of(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments);
    stdout_within(command, RUN_LIMIT)
}

fn stdout_within(command: Command, limit: Duration) -> Result<String, String> {
    let program = command.as_std().get_program().to_owned();
    let event_loop = event_loop::build().map_err(|error| command_line::error_chain(&error))?;
    let ended = event_loop
        .block_on(async {
            let stop = Stop::only_after(limit);
            let mut running = pin!(stop.or_output(command));
            if let Ok(ended) = timeout(limit / 2, &mut running).await {
                return ended;
            }
            tracing::warn!(
                ?program,
                limit_s = limit.as_secs(),
                "waiting for a program that does not answer"
            );
            running.await
        })
        .map_err(|reason| reason.to_string())?
        .map_err(|error| error.to_string())?;
    let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
    match (ended.status, first_line(&stdout)) {
        (status, _) if status.success() => Ok(stdout),
        (status, "") => Err(format!("exited with {status}")),
        (status, line) => Err(format!("exited with {status}: {line}")),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(all(test, unix))]
pub(super) mod tests;
