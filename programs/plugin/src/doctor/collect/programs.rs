//! Programs of the node: where they are, and what they print when they are run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use devices::{Program, ProgramVersion};

use crate::doctor::process::{RunError, run};
use crate::doctor::stop::Stop;

/// How long a program may take to print its version or configuration.
const RUN_LIMIT: Duration = Duration::from_secs(10);

/// Where to search for a program.
pub(super) struct ProgramSearch<'a> {
    /// Its file name.
    pub(super) file: &'a str,
    /// The service that runs it, and the program of that service.
    pub(super) service: (&'a str, Option<PathBuf>),
    /// The folders that installers use.
    pub(super) folders: Vec<PathBuf>,
    /// The folders of PATH.
    pub(super) path: Vec<PathBuf>,
}

impl ProgramSearch<'_> {
    /// Finds the program and the version it prints for `--version`.
    pub(super) fn find(&self) -> Program {
        let Some(found) = self.candidates().find(|path| path.is_file()) else {
            return Program::NotFound(self.searched());
        };
        let printed = stdout_of(&found, &["--version"]);
        let version = printed.and_then(|text| {
            ProgramVersion::find(&text)
                .ok_or_else(|| format!("no version in its output `{}`", first_line(&text)))
        });
        Program::Found { path: found.display().to_string(), version }
    }

    /// The paths to try. The service's program comes first, unless it is a wrapper with
    /// another name.
    fn candidates(&self) -> impl Iterator<Item = PathBuf> {
        let named = |path: &&PathBuf| {
            path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(self.file))
        };
        let service = self.service.1.as_ref().filter(named).cloned();
        let folders = self.folders.iter().chain(&self.path);
        service.into_iter().chain(folders.map(|folder| folder.join(self.file)))
    }

    /// The places for a message.
    fn searched(&self) -> Vec<String> {
        let folders = self.folders.iter().map(|folder| folder.display().to_string());
        let service = format!("the service `{}`", self.service.0);
        [service].into_iter().chain(folders).chain(["PATH".to_owned()]).collect()
    }
}

/// What a program writes to standard output; the text of an error if it cannot be run,
/// fails, or takes too long.
pub(super) fn stdout_of(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments);
    stdout_within(command, RUN_LIMIT)
}

fn stdout_within(command: Command, limit: Duration) -> Result<String, String> {
    let ended = run(command, &Stop::only_after(limit)).map_err(|error| match error {
        RunError::Start(error) => error.to_string(),
        RunError::Stopped(_) => format!("no answer within {} s", limit.as_secs_f32()),
    })?;
    match (ended.status, first_line(&ended.stdout)) {
        (status, _) if status.success() => Ok(ended.stdout),
        (status, "") => Err(format!("exited with {status}")),
        (status, line) => Err(format!("exited with {status}: {line}")),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(all(test, unix))]
pub(super) mod tests;
