//! An X server without a screen.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::process::line;

/// A running server. Dropping it stops it.
pub(super) struct Display {
    server: Child,
    /// As in the variable `DISPLAY`.
    pub(super) name: String,
}

impl Display {
    /// Starts `server`, which writes its number to standard output when it is ready.
    pub(super) fn start(mut server: Command) -> Result<Display> {
        let text = line(&server);
        let streams = server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = streams.spawn().with_context(|| format!("cannot run {text}"))?;
        let stdout = server.stdout.take().expect("standard output is piped");
        let mut display = Display { server, name: String::new() };
        let mut number = String::new();
        BufReader::new(stdout).read_line(&mut number)?;
        ensure!(!number.trim().is_empty(), "{text} ended before it was ready");
        display.name = format!(":{}", number.trim());
        Ok(display)
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
