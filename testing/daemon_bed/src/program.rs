//! The measured program, as a process.

use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::node::Node;

/// A running `serve` process. It is killed when dropped.
pub struct Program {
    child: Child,
    /// When it was started.
    pub started: Instant,
}

impl Program {
    /// Starts the daemon for the node as it would run on a host: with both driver models and
    /// default logging. The log is discarded.
    pub fn start(program: &Path, node: &Node) -> Result<Program> {
        Program::spawn(Command::new(program), node, &[], Stdio::null())
    }

    /// Starts the daemon with further arguments, and with `log` as its standard error. On Linux it
    /// is killed when the calling thread ends, so that it does not outlive a program that is killed.
    pub fn start_with(
        program: &Path,
        node: &Node,
        arguments: &[&str],
        log: Stdio,
    ) -> Result<Program> {
        let command = if cfg!(target_os = "linux") {
            // `setpriv` replaces itself by the program, so the process ID is the same.
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        Program::spawn(command, node, arguments, log)
    }

    fn spawn(mut command: Command, node: &Node, arguments: &[&str], log: Stdio) -> Result<Program> {
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
            .stderr(log);
        let started = Instant::now();
        let name = command.get_program().to_owned();
        let child = command.spawn().with_context(|| format!("cannot run `{}`", name.display()))?;
        Ok(Program { child, started })
    }

    /// The log of a daemon that was started with [`Stdio::piped`], once.
    pub fn take_log(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// The process ID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the process ended, or `None` if it runs.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("cannot query the process")
    }

    /// The number of open file descriptors, if the operating system reports it.
    #[must_use]
    pub fn open_files(&self) -> Option<usize> {
        Some(std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).ok()?.count())
    }

    /// The resident memory, private and shared, in MiB, if the operating system reports it.
    #[must_use]
    pub fn resident(&self) -> Option<f64> {
        self.status_mib("VmRSS:")
    }

    /// The maximum of the resident memory, in MiB, if the operating system reports it.
    #[must_use]
    pub fn peak(&self) -> Option<f64> {
        self.status_mib("VmHWM:")
    }

    /// How often its threads have blocked and resumed since the start of the process.
    #[must_use]
    pub fn wake_ups(&self) -> Option<u64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let mut sum = 0;
        for task in tasks {
            let status = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
            sum += field(&status, "voluntary_ctxt_switches:")?;
        }
        Some(sum)
    }

    /// The time that its threads have spent on a processor. Threads that have ended do not count.
    #[must_use]
    pub fn cpu_time(&self) -> Option<Duration> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let mut sum = Duration::ZERO;
        for task in tasks {
            let times = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            sum += Duration::from_nanos(times.split_whitespace().next()?.parse().ok()?);
        }
        Some(sum)
    }

    fn status_mib(&self, name: &str) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let kib = u32::try_from(field(&status, name)?).ok()?;
        Some(f64::from(kib) / 1024.0)
    }
}

impl Program {
    /// Kills the process if it runs, and waits for its end.
    pub fn kill(&mut self) {
        // An error means that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The number of a line of `/proc/PID/status` (proc(5)).
fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_status_lines_by_their_full_name() {
        let status =
            "VmRSS:\t    3480 kB\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(status, "VmRSS:"), Some(3480));
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(12));
        assert_eq!(field(status, "VmHWM:"), None);
    }

    /// Set for the process that the test starts and kills.
    #[cfg(target_os = "linux")]
    const PARENT: &str = "DAEMON_BED_TEST_PARENT";

    /// The parent is this test in another process.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_daemon_does_not_outlive_a_parent_that_is_killed() {
        use std::io::{BufRead, BufReader};
        if std::env::var_os(PARENT).is_some() {
            return be_a_parent();
        }
        let name = "program::tests::a_daemon_does_not_outlive_a_parent_that_is_killed";
        let mut parent = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(PARENT, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
        let daemon = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("daemon ")?.1.trim().parse::<u32>().ok());
        parent.kill().unwrap();
        parent.wait().unwrap();
        let daemon = daemon.unwrap();
        // A process that nobody waits for may stay as a zombie, which has no program.
        let runs = || std::fs::read_link(format!("/proc/{daemon}/exe")).is_ok();
        let since = Instant::now();
        while runs() {
            assert!(since.elapsed() < Duration::from_mins(2), "the process {daemon} still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[cfg(target_os = "linux")]
    fn be_a_parent() {
        use std::os::unix::fs::PermissionsExt;
        let node = Node::new(crate::Shape { replicas: 8, files: 0 }).unwrap();
        // The script runs for longer than the test waits, whatever its arguments are.
        let program = node.directory().join("daemon.sh");
        let runs = node.directory().join("runs");
        let script = format!("#!/bin/sh\n: > {}\nexec sleep 600\n", runs.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let daemon = Program::start_with(&program, &node, &[], Stdio::null()).unwrap();
        // A busy machine may not yet have run `setpriv`.
        while !runs.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        println!("daemon {}", daemon.id());
        std::thread::sleep(Duration::from_mins(10));
    }
}
