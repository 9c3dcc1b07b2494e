//! A daemon that a test starts and that ends with it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::{last_lines, line};

/// How long a daemon may take to start on a slow machine.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A running daemon. Dropping it kills it.
pub(super) struct Daemon {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Daemon {
    /// Starts `command` with its output in the file `log`.
    pub(super) fn start(mut command: Command, log: &Path) -> Result<Daemon> {
        let file = File::create(log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let name = line(&command);
        let child = command.spawn().with_context(|| format!("cannot run {name}"))?;
        Ok(Daemon { child, name, log: log.to_owned() })
    }

    /// Waits until `is_ready` finds in the log what it returns.
    pub(super) fn wait<T>(&mut self, is_ready: impl Fn(&str) -> Option<T>) -> Result<T> {
        let end = Instant::now() + START_LIMIT;
        loop {
            let log = fs::read(&self.log)?;
            if let Some(found) = is_ready(&String::from_utf8_lossy(&log)) {
                return Ok(found);
            }
            let problem = if self.child.try_wait()?.is_some() {
                "exited"
            } else if Instant::now() > end {
                "is not ready"
            } else {
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            bail!("{} {problem}:\n{}", self.name, last_lines(&log, 15));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
