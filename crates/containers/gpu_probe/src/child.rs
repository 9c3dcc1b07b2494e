//! Runs a child process with a time limit. A driver that crashes or hangs ends only the child.
//!
//! The child is this program with a hidden argument. It writes its result as one line of JSON
//! behind a marker to standard output, because drivers write there too.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::Api;
use crate::arguments::for_child;
use crate::outcome::{Fault, Outcome};

/// Begins the line with the result.
const MARKER: &str = "gpu-probe-result:";

/// How much of a child's output is kept.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// How often a child is checked for its end.
const TICK: Duration = Duration::from_millis(5);

/// How long a child's output may take to arrive after its end, and a killed child to end: a
/// process that hangs in a driver cannot be ended at all.
const GRACE: Duration = Duration::from_secs(2);

/// The text that a child prints for its parent.
#[must_use]
pub fn result(value: &impl Serialize) -> String {
    // Texts and numbers can be written as JSON; the parent reports a line that cannot be read.
    let line = serde_json::to_string(value).unwrap_or_default();
    // A driver may have written half a line.
    format!("\n{MARKER}{line}\n")
}

/// Tests `api` in a child process, at most for `limit`.
pub(crate) fn run(api: Api, limit: Duration) -> Outcome {
    let ended = std::env::current_exe().and_then(|program| {
        let mut command = Command::new(program);
        supervise(command.args(for_child(api)), limit, |_| Ok(()))
    });
    match ended {
        Ok(ended) => ended.outcome(limit),
        Err(error) => {
            let message = format!("cannot start the process that tests this API: {error}");
            Outcome::Broken { library: None, fault: Fault::new(message) }
        }
    }
}

/// A child that ended or was ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status; `None` if the child exceeded the time limit.
    pub status: Option<ExitStatus>,
    stdout: String,
    /// The text that the child wrote to standard error.
    pub stderr: String,
}

/// Runs a child and ends it after `limit`. `started` gets it before anything else happens; if that
/// fails, the child is ended.
pub fn supervise<E: From<io::Error>>(
    command: &mut Command,
    limit: Duration,
    started: impl FnOnce(&Child) -> Result<(), E>,
) -> Result<Ended, E> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Err(error) = started(&child) {
        child.kill()?;
        return Err(error);
    }
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    let status = wait(&mut child, limit)?;
    if status.is_none() {
        // The child may have ended by itself in the meantime.
        let _ = child.kill();
        wait(&mut child, GRACE)?;
    }
    Ok(Ended {
        status,
        stdout: stdout.map(collected).unwrap_or_default(),
        stderr: stderr.map(collected).unwrap_or_default(),
    })
}

/// Waits for the end of `child`, at most for `limit`.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= limit {
            return Ok(None);
        }
        thread::sleep(TICK);
    }
}

/// Reads a child's output on a thread: a process that the child started may keep the pipe open.
fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error still counts.
        let _ = (&mut pipe).take(OUTPUT_LIMIT).read_to_end(&mut bytes);
        // A full pipe would stop the child.
        let _ = io::copy(&mut pipe, &mut io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// What the thread has read, if it ends in time. It is joined, because under Wine a process that
/// exits while one of its threads ends sometimes has the exit status 0.
fn collected(reader: JoinHandle<String>) -> String {
    let start = Instant::now();
    while !reader.is_finished() {
        if start.elapsed() >= GRACE {
            return String::new();
        }
        thread::sleep(TICK);
    }
    // A panic would have been printed.
    reader.join().unwrap_or_default()
}

impl Ended {
    /// The value that the child printed with [`result`], even if the driver crashed later.
    #[must_use]
    pub fn result<T: DeserializeOwned>(&self) -> Option<T> {
        let line = self.stdout.lines().find_map(|line| line.strip_prefix(MARKER))?;
        serde_json::from_str(line).ok()
    }

    fn outcome(&self, limit: Duration) -> Outcome {
        if let Some(outcome) = self.result() {
            return outcome;
        }
        let fault = match self.status {
            None => {
                let seconds = limit.as_secs();
                Fault::new(format!("no result within {seconds} s; the test was ended")).hint(
                    "the driver hangs: restart the container or the node; `--time-limit` raises \
                     the limit",
                )
            }
            Some(status) => {
                let last = self.stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
                let cause = last.map(|line| format!(": {line}")).unwrap_or_default();
                Fault::new(format!("the process that tests this API ended with {status}{cause}"))
                    .hint("the API's library or driver crashed: check the driver's version")
            }
        };
        Outcome::Broken { library: None, fault }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn ended(script: &str, limit: Duration) -> Ended {
        let mut command = Command::new("sh");
        supervise::<io::Error>(command.args(["-c", script]), limit, |_| Ok(())).unwrap()
    }

    fn message(script: &str, limit: Duration) -> String {
        match ended(script, limit).outcome(limit) {
            Outcome::Broken { fault, .. } => fault.message,
            other => panic!("{other:?}"),
        }
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn the_outcome_is_found_among_the_output_of_a_driver() {
        let json = serde_json::to_string(&Outcome::Absent(Fault::new("x"))).unwrap();
        let script = format!("echo noise; echo '{MARKER}{json}'; echo more; kill -9 $$");
        assert_eq!(ended(&script, LONG).outcome(LONG), Outcome::Absent(Fault::new("x")));
    }

    #[test]
    fn a_hang_is_ended_and_reported() {
        let limit = Duration::from_secs(1);
        assert_eq!(message("exec sleep 600", limit), "no result within 1 s; the test was ended");
    }

    #[test]
    fn a_crash_is_reported_with_the_last_line_of_the_driver() {
        let found = message("echo first >&2; echo 'bad thing ' >&2; kill -6 $$", LONG);
        assert!(found.contains("signal: 6"), "{found}");
        assert!(found.ends_with(": bad thing"), "{found}");
        assert!(message("exit 3", LONG).ends_with("ended with exit status: 3"));
    }

    #[test]
    fn a_child_that_writes_much_is_not_stopped() {
        let script = "head -c 3000000 /dev/zero; exit 4";
        assert!(message(script, LONG).ends_with("exit status: 4"));
    }

    #[test]
    fn a_process_that_keeps_the_pipe_open_does_not_hold_the_report() {
        let start = Instant::now();
        let found = message("sleep 600 2>&- & echo $! >&2; exit 5", LONG);
        assert!(start.elapsed() < Duration::from_secs(500));
        let (message, sleep) = found.rsplit_once(": ").unwrap();
        assert!(message.ends_with("exit status: 5"), "{found}");
        let kill = format!("kill {sleep}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}
