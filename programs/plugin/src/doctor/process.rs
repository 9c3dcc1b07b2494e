//! Runs a program of the node, and ends it when it takes too long.

use std::io;
use std::process::{ExitStatus, Output, Stdio};

use node::daemon::event_loop;
use tokio::process::Command;

use crate::doctor::stop::{Reason, Stop};

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
pub(crate) fn run(command: std::process::Command, stop: &Stop) -> Result<Ended, RunError> {
    let event_loop =
        event_loop::build().map_err(|error| RunError::Start(io::Error::other(error.chain())))?;
    let mut command = Command::from(command);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = event_loop.block_on(async { stop.or(command.output()).await });
    let Output { status, stdout, stderr } =
        ended.map_err(RunError::Stopped)?.map_err(RunError::Start)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ended { status, stdout: text(stdout), stderr: text(stderr) })
}
