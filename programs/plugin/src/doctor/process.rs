//! Runs a program of the node, and ends it when it takes too long.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::doctor::stop::{Reason, Stop};

/// How often the program is asked whether it has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long its output may take to end after it has ended: a process that it left behind
/// keeps the pipe open.
const OUTPUT_LIMIT: Duration = Duration::from_secs(2);
/// How much of its output is kept.
const MAX_OUTPUT: u64 = 4 << 20;

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
    Ok(Ended { status, stdout: received(&stdout), stderr: received(&stderr) })
}

/// Reads a pipe on a thread, so that the program never waits for its reader.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is kept.
            let _ = pipe.by_ref().take(MAX_OUTPUT).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        // The receiver is dropped when the program was ended.
        let _ = send.send(bytes);
    });
    receive
}

fn received(output: &Receiver<Vec<u8>>) -> String {
    let bytes = output.recv_timeout(OUTPUT_LIMIT).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
