//! Programs of the node: where they are, and what they say when they are run.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::doctor::observed::Program;
use crate::doctor::version::Version;

/// How long a program may take to say something about itself.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Where a program may be.
pub(super) struct Places<'a> {
    /// Its file name.
    pub(super) file: &'a str,
    /// The service that runs it, and the program of that service.
    pub(super) service: (&'a str, Option<PathBuf>),
    /// Folders that installers use.
    pub(super) folders: Vec<PathBuf>,
    /// The folders of PATH.
    pub(super) path: Vec<PathBuf>,
}

impl Places<'_> {
    /// The program, and the version it prints for `--version`.
    pub(super) fn program(&self) -> Program {
        let Some(found) = self.candidates().find(|path| path.is_file()) else {
            return Program::NotFound(self.in_words());
        };
        let answer = answer(&found, &["--version"]);
        let version = answer.and_then(|text| {
            Version::find(&text).ok_or_else(|| format!("it prints `{}`", first_line(&text)))
        });
        Program::Found { path: found.display().to_string(), version }
    }

    /// The service's program first, unless it is a wrapper of another name.
    fn candidates(&self) -> impl Iterator<Item = PathBuf> {
        let named = |path: &&PathBuf| {
            path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(self.file))
        };
        let service = self.service.1.as_ref().filter(named).cloned();
        let folders = self.folders.iter().chain(&self.path);
        service.into_iter().chain(folders.map(|folder| folder.join(self.file)))
    }

    fn in_words(&self) -> Vec<String> {
        let folders = self.folders.iter().map(|folder| folder.display().to_string());
        let service = format!("the service `{}`", self.service.0);
        [service].into_iter().chain(folders).chain(["PATH".to_owned()]).collect()
    }
}

/// What a program writes to its standard output; an error in words if it cannot be
/// run, fails, or takes too long.
pub(super) fn answer(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments);
    answer_within(command, ANSWER_LIMIT)
}

fn answer_within(mut command: Command, limit: Duration) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut stdout = child.stdout.take().expect("standard output is a pipe");
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.read_to_end(&mut bytes).map(|_| bytes);
        // Nobody listens any more where it took too long.
        let _ = send.send(read);
    });
    let read = receive.recv_timeout(limit);
    if read.is_err() {
        // It may have ended just now; then there is nothing to end.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let bytes = match read {
        Err(_) => return Err(format!("it did not answer within {} s", limit.as_secs_f32())),
        Ok(read) => read.map_err(|error| error.to_string())?,
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match (status.success(), first_line(&text)) {
        (true, _) => Ok(text),
        (false, "") => Err(format!("it ended with {status}")),
        (false, line) => Err(format!("it ended with {status}: {line}")),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
#[cfg(unix)]
pub(super) mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Makes a program of `text`.
    pub(in super::super) fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn sh(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn the_service_comes_first_then_folders_then_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let places = |service: Option<PathBuf>| Places {
            file: "tool",
            service: ("tool", service),
            folders: vec![folder.path().join("a")],
            path: vec![folder.path().to_owned()],
        };
        let words = ["the service `tool`", &folder.path().join("a").display().to_string(), "PATH"];
        assert_eq!(places(None).program(), Program::NotFound(words.map(str::to_owned).to_vec()));

        let found = |places: &Places<'_>| match places.program() {
            Program::Found { version, .. } => version.map(|version| version.to_string()),
            Program::NotFound(places) => panic!("not in {places:?}"),
        };
        script(folder.path(), "tool", "echo tool v1.2.3 abc");
        assert_eq!(found(&places(None)).unwrap(), "1.2.3");
        std::fs::create_dir(folder.path().join("s")).unwrap();
        let served = script(&folder.path().join("s"), "tool", "echo tool v1.2.4");
        assert_eq!(found(&places(Some(served))).unwrap(), "1.2.4");
        let wrapper = script(folder.path(), "nssm", "echo nssm 9.9.9");
        assert_eq!(found(&places(Some(wrapper))).unwrap(), "1.2.3");
        script(folder.path(), "tool", "echo nonsense");
        assert_eq!(found(&places(None)).unwrap_err(), "it prints `nonsense`");
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_told_in_words() {
        let answer = |text: &str| answer_within(sh(text), Duration::from_secs(5));
        assert_eq!(answer("echo a").unwrap(), "a\n");
        assert_eq!(answer("exit 3").unwrap_err(), "it ended with exit status: 3");
        assert_eq!(answer("echo why; exit 3").unwrap_err(), "it ended with exit status: 3: why");
        let slow = answer_within(sh("exec sleep 60"), Duration::from_millis(50)).unwrap_err();
        assert_eq!(slow, "it did not answer within 0.05 s");
        assert!(super::answer(Path::new("/nonexistent/tool"), &[]).is_err());
    }
}
