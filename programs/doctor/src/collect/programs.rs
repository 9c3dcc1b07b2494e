//! Programs of the node: where they are, and what they print when they are run.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use devices::{Program, ProgramVersion};

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

fn stdout_within(mut command: Command, limit: Duration) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut stdout = child.stdout.take().expect("standard output is a pipe");
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.read_to_end(&mut bytes).map(|_| bytes);
        // The receiver is dropped when the time limit has passed.
        let _ = send.send(read);
    });
    let read = receive.recv_timeout(limit);
    if read.is_err() {
        // The process may have exited in the meantime.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let bytes = match read {
        Err(_) => return Err(format!("no answer within {} s", limit.as_secs_f32())),
        Ok(read) => read.map_err(|error| error.to_string())?,
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match (status.success(), first_line(&text)) {
        (true, _) => Ok(text),
        (false, "") => Err(format!("exited with {status}")),
        (false, line) => Err(format!("exited with {status}: {line}")),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
#[cfg(unix)]
pub(super) mod tests {
    use super::*;

    /// Creates a shell script. Another process writes it: while this one has it open, a process
    /// that another test starts may inherit it, and then it cannot be run (`ETXTBSY`).
    pub(in super::super) fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        let mut write = sh(r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod +x "$0""#);
        assert!(write.arg(&path).arg(text).status().unwrap().success());
        path
    }

    fn sh(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn the_service_is_searched_first_then_folders_then_path() {
        let folder = tempfile::tempdir().unwrap();
        let search = |service: Option<PathBuf>| ProgramSearch {
            file: "tool",
            service: ("tool", service),
            folders: vec![folder.path().join("a")],
            path: vec![folder.path().to_owned()],
        };
        let searched =
            ["the service `tool`", &folder.path().join("a").display().to_string(), "PATH"];
        assert_eq!(search(None).find(), Program::NotFound(searched.map(str::to_owned).to_vec()));

        let found = |search: &ProgramSearch<'_>| match search.find() {
            Program::Found { version, .. } => version.map(|version| version.to_string()),
            Program::NotFound(places) => panic!("not in {places:?}"),
        };
        script(folder.path(), "tool", "echo tool v1.2.3 abc");
        assert_eq!(found(&search(None)).unwrap(), "1.2.3");
        std::fs::create_dir(folder.path().join("s")).unwrap();
        let of_service = script(&folder.path().join("s"), "tool", "echo tool v1.2.4");
        assert_eq!(found(&search(Some(of_service))).unwrap(), "1.2.4");
        let wrapper = script(folder.path(), "nssm", "echo nssm 9.9.9");
        assert_eq!(found(&search(Some(wrapper))).unwrap(), "1.2.3");
        script(folder.path(), "tool", "echo nonsense");
        assert_eq!(found(&search(None)).unwrap_err(), "no version in its output `nonsense`");
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_an_error() {
        let stdout = |text: &str| stdout_within(sh(text), Duration::from_secs(60));
        assert_eq!(stdout("echo a").unwrap(), "a\n");
        assert_eq!(stdout("exit 3").unwrap_err(), "exited with exit status: 3");
        assert_eq!(stdout("echo why; exit 3").unwrap_err(), "exited with exit status: 3: why");
        let slow = stdout_within(sh("exec sleep 60"), Duration::from_millis(50)).unwrap_err();
        assert_eq!(slow, "no answer within 0.05 s");
        assert!(super::stdout_of(Path::new("/nonexistent/tool"), &[]).is_err());
    }
}
