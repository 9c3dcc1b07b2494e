//! The measured program, as a process.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::node::Node;

/// A running `serve` process. It is killed when dropped.
pub(crate) struct Program {
    child: Child,
    /// When it was started.
    pub(crate) started: Instant,
}

impl Program {
    /// Starts the daemon for the node as it would run on a host: with both driver models and
    /// default logging. The log is discarded.
    pub(crate) fn start(program: &Path, node: &Node) -> Result<Program> {
        Program::start_with(program, node, &[])
    }

    /// Starts the daemon with further arguments.
    pub(crate) fn start_with(program: &Path, node: &Node, arguments: &[&str]) -> Result<Program> {
        let mut command = Command::new(program);
        command
            .args(["serve", "--inventory"])
            .arg(node.inventory())
            .arg("--config")
            .arg(node.config())
            .arg("--device-plugin-dir")
            .arg(node.directory())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Instant::now();
        let child =
            command.spawn().with_context(|| format!("cannot run `{}`", program.display()))?;
        Ok(Program { child, started })
    }

    /// The resident memory, private and shared, in MiB, if the operating system reports it.
    pub(crate) fn resident(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let kib = u32::try_from(field(&status, "VmRSS:")?).ok()?;
        Some(f64::from(kib) / 1024.0)
    }

    /// How often its threads have blocked and resumed since the start of the process.
    pub(crate) fn wake_ups(&self) -> Option<u64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let mut sum = 0;
        for task in tasks {
            let status = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
            sum += field(&status, "voluntary_ctxt_switches:")?;
        }
        Some(sum)
    }

    /// The time that its threads have spent on a processor. Threads that have ended do not count.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let mut sum = Duration::ZERO;
        for task in tasks {
            let times = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            sum += Duration::from_nanos(times.split_whitespace().next()?.parse().ok()?);
        }
        Some(sum)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An error means that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number of a line of `/proc/PID/status` (proc(5)).
fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}
