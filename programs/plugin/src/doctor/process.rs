//! Runs a program of the node, and ends it when it takes too long.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::doctor::stop::{Reason, Stop};

/// How often the program is asked whether it has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A program that has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Why there is no result of a program.
#[derive(Debug)]
pub(crate) enum RunError {
    /// It cannot be started.
    Start(io::Error),
    /// It was ended.
    Stopped(Reason),
}

/// Runs a program to its end.
pub(crate) fn run(mut command: Command, stop: &Stop) -> Result<Ended, RunError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(RunError::Start)?;
    let stdout = read(child.stdout.take());
    let stderr = read(child.stderr.take());
    let status = loop {
        if let Some(status) = child.try_wait().map_err(RunError::Start)? {
            break status;
        }
        if let Some(reason) = stop.reason() {
            // It may have ended in the meantime.
            let _ = child.kill();
            let _ = child.wait();
            return Err(RunError::Stopped(reason));
        }
        thread::sleep(CHECK_INTERVAL);
    };
    Ok(Ended { status, stdout: text(stdout), stderr: text(stderr) })
}

/// Reads a pipe on a thread, so that the program never waits for its reader.
fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is kept.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

fn text(output: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&output.join().unwrap_or_default()).into_owned()
}
