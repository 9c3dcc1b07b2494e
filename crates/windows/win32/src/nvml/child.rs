//! The child process that asks NVML, and how its parent reads the answer.
//!
//! The answer is one line of JSON behind a marker on standard output, because drivers write there,
//! too. Standard error is not read: why NVML cannot be used is part of the answer.

use std::env;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use windows_report::nvml::Gpu;

use super::{ARGUMENT, NvmlError};
use crate::threads::join_before_exit;

/// The GPUs, or why NVML cannot be used. Most often there is none.
pub(super) type Answer = Result<Vec<Gpu>, String>;

/// Begins the line with the answer.
const MARKER: &str = "nvml-answer:";

/// How long NVML may take. It takes milliseconds, and seconds while a driver starts.
const LIMIT: Duration = Duration::from_secs(20);

/// How often the child is checked for its end.
const TICK: Duration = Duration::from_millis(10);

/// How long the output may take to arrive after the end of the child.
const GRACE: Duration = Duration::from_secs(2);

/// How much of the output is kept. An answer about 16 GPUs has 4 KiB.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// What Windows' own libraries read. The driver does not get the plugin's configuration.
const VARIABLES: [&str; 7] =
    ["SystemRoot", "SystemDrive", "windir", "ProgramData", "ProgramFiles", "TEMP", "TMP"];

/// The answer as the child prints it.
pub(super) fn text(answer: &Answer) -> serde_json::Result<String> {
    // A driver may have written half a line.
    Ok(format!("\n{MARKER}{}\n", serde_json::to_string(answer)?))
}

/// The GPUs that NVML, from the first of `folders` that contains it, reports in a child process.
pub(super) fn ask(folders: &[&str]) -> Result<Vec<Gpu>, NvmlError> {
    let program = env::current_exe().map_err(NvmlError::Process)?;
    match answer(&mut question(&program, folders), LIMIT)? {
        Ok(gpus) => Ok(gpus),
        Err(error) => {
            tracing::debug!(error, "NVML unavailable");
            Ok(Vec::new())
        }
    }
}

fn question(program: &Path, folders: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg(ARGUMENT).args(folders).env_clear();
    command.envs(VARIABLES.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command
}

/// Runs a child and returns its answer. When this returns, the child has ended: one that hangs in
/// the kernel is waited for even after it was killed, so that there is never a second one.
fn answer(command: &mut Command, limit: Duration) -> Result<Answer, NvmlError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(windows)]
    {
        crate::sys::job::end_children_with_this_process().map_err(NvmlError::Process)?;
        std::os::windows::process::CommandExt::creation_flags(command, DETACHED_PROCESS);
    }
    let mut child = command.spawn().map_err(NvmlError::Process)?;
    let ended = supervise(&mut child, limit);
    // After an error, it may still run.
    let _ = child.kill();
    let _ = child.wait();
    let Ended { status, stdout } = ended.map_err(NvmlError::Process)?;
    let line = stdout.lines().find_map(|line| line.strip_prefix(MARKER));
    // An answer counts even if the driver hung or crashed afterwards.
    match (line.and_then(|line| serde_json::from_str(line).ok()), status) {
        (Some(answer), _) => Ok(answer),
        (None, Some(status)) => Err(NvmlError::Ended(status)),
        (None, None) => Err(NvmlError::NoAnswer { seconds: limit.as_secs() }),
    }
}

/// The child needs no console (processthreadsapi.h).
#[cfg(windows)]
const DETACHED_PROCESS: u32 = 8;

/// A child that ended, or was killed.
struct Ended {
    /// `None` if the child exceeded the limit.
    status: Option<ExitStatus>,
    stdout: String,
}

/// Waits for the end of a child, and kills it after `limit`.
fn supervise(child: &mut Child, limit: Duration) -> io::Result<Ended> {
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let reader = thread::Builder::new().spawn(move || read(stdout))?;
    let began = Instant::now();
    let status = loop {
        match child.try_wait()? {
            None if began.elapsed() < limit => thread::sleep(TICK),
            None => {
                child.kill()?;
                break None;
            }
            status => break status,
        }
    };
    Ok(Ended { status, stdout: collected(reader) })
}

/// Reads until the pipe is closed: a full pipe would stop the child.
fn read(mut stdout: ChildStdout) -> String {
    let mut bytes = Vec::new();
    // What was read before an error still counts.
    let _ = (&mut stdout).take(OUTPUT_LIMIT).read_to_end(&mut bytes);
    let _ = io::copy(&mut stdout, &mut io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the thread has read, if that has ended in time: a process that the child has started may
/// keep the pipe open.
fn collected(reader: JoinHandle<String>) -> String {
    let began = Instant::now();
    while !reader.is_finished() {
        if began.elapsed() >= GRACE {
            return String::new();
        }
        thread::sleep(TICK);
    }
    join_before_exit(reader).unwrap_or_default()
}

#[cfg(all(test, unix))]
mod tests {
    use host::License;
    use windows_report::nvml::PciAddress;

    use super::*;

    const LONG: Duration = Duration::from_mins(5);
    const SHORT: Duration = Duration::from_secs(1);

    /// What a child says that is a shell script.
    fn says(script: &str, limit: Duration) -> Result<Answer, String> {
        let mut shell = Command::new("sh");
        answer(shell.args(["-c", script]), limit).map_err(|error| host::error_chain(&error))
    }

    fn answers() -> [Answer; 2] {
        let gpu = Gpu {
            address: PciAddress { segment: 0, bus: 1, device: 2 },
            uuid: Some("GPU-1".to_owned()),
            compute_capability: "8.6".parse().ok(),
            license: Some(License::MISSING),
        };
        [Ok(vec![gpu]), Err("nvml.dll: it doesn't exist".to_owned())]
    }

    /// A command of the shell that prints an answer.
    fn print(answer: &Answer) -> String {
        let text = text(answer).expect("texts and numbers can be written");
        format!("printf '%s' '{}'", text.replace('\'', r"'\''"))
    }

    #[test]
    fn the_answer_is_found_among_the_output_of_a_driver() {
        for answer in answers() {
            let print = print(&answer);
            let script = format!("printf noise; {print}; echo more; echo error >&2");
            assert_eq!(says(&script, LONG), Ok(answer.clone()));
            // A driver may crash, hang or fail after the answer.
            for end in ["kill -11 $$", "exit 3"] {
                assert_eq!(says(&format!("{print}; {end}"), LONG), Ok(answer.clone()));
            }
            let script = format!("{print}; exec sleep 600");
            assert_eq!(says(&script, SHORT), Ok(answer));
        }
    }

    #[test]
    fn a_child_without_an_answer_is_an_error_with_its_exit_status() {
        let [known, _] = answers();
        let half = format!("{} | head -c 30", print(&known));
        for (script, status) in [
            ("true", "exit status: 0"),
            ("echo garbage; echo nvml-answer:", "exit status: 0"),
            ("printf 'nvml-answer:\\377\\n'", "exit status: 0"),
            ("echo 'nvml-answer:{\"Ok\": 7}'", "exit status: 0"),
            ("exit 101", "exit status: 101"),
            ("kill -11 $$", "signal: 11 (SIGSEGV)"),
            ("head -c 3000000 /dev/zero; exit 4", "exit status: 4"),
            (&half, "exit status: 0"),
        ] {
            let expected = format!("the process that asks NVML ended without an answer: {status}");
            let error = says(script, LONG).unwrap_err();
            assert!(error.starts_with(&expected), "{script}: {error}");
        }
        let missing = answer(&mut Command::new("/nonexistent/program"), LONG);
        assert!(matches!(missing, Err(NvmlError::Process(_))));
    }

    /// Whether the process whose ID the script wrote to this file exists, also as a zombie.
    fn exists(id: &Path) -> bool {
        let id = std::fs::read_to_string(id).expect("the script has begun");
        Path::new("/proc").join(id.trim()).exists()
    }

    #[test]
    fn a_child_that_hangs_or_writes_for_ever_has_ended_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let id = folder.path().join("id");
        for hang in ["exec sleep 600", "exec yes"] {
            let script = format!("echo $$ > '{}'; {hang}", id.display());
            let expected = "NVML has not answered within 1 s, and its process was ended";
            assert_eq!(says(&script, SHORT), Err(expected.to_owned()));
            assert!(!exists(&id), "{hang}");
        }
    }

    #[test]
    fn a_process_that_keeps_the_pipe_open_delays_nothing_for_long() {
        let folder = tempfile::tempdir().unwrap();
        let id = folder.path().join("id");
        let script = format!("sleep 600 & echo $! > '{}'", id.display());
        assert!(says(&script, LONG).is_err());
        assert!(exists(&id));
        let kill = format!("kill $(cat '{}')", id.display());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    #[test]
    fn the_child_gets_its_question_and_no_other_variables() {
        assert!(env::var_os("CARGO_MANIFEST_DIR").is_some());
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        // Another process writes it: while this one has it open, it cannot be run (`ETXTBSY`).
        let write = r#"printf '#!/bin/sh\n%s' "$1" > "$0" && chmod +x "$0""#;
        let script = r#"printf 'nvml-answer:{"Err":"%s"}\n' "${CARGO_MANIFEST_DIR-unset} $*""#;
        let mut shell = Command::new("sh");
        assert!(shell.args(["-c", write]).arg(&program).arg(script).status().unwrap().success());
        let found = answer(&mut question(&program, &["a", "b"]), LONG).unwrap();
        assert_eq!(found, Err("unset --report-nvml a b".to_owned()));
    }

    /// The program of these tests does not call [`super::super::answer_parent`].
    #[test]
    fn the_child_is_this_program() {
        assert!(matches!(ask(&[]), Err(NvmlError::Ended(status)) if !status.success()));
    }
}
