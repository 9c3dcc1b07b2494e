//! The daemon on a host that changes. Wine has no `AF_UNIX`, so the daemon cannot reach a
//! kubelet. The tests watch what it logs about its device set.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::programs::Programs;
use super::test_case::TestCase;
use crate::workspace;

/// Longer than the daemon takes to notice any change on a slow machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// The tests, by name.
pub(super) fn tests() -> Vec<TestCase> {
    vec![
        TestCase::new("serve: device arrival, removal and return", arrival_removal_and_return),
        TestCase::new("serve: a burst of changes", burst),
        TestCase::new("serve: stopped as containerd does", stopped_like_a_container),
    ]
}

const FIRST: &str = "7048070";
const SECOND: &str = "7098126";

/// Inventories with the first adapter, with both, and with both after a driver upgrade of the
/// second.
struct Inventories {
    first: PathBuf,
    both: PathBuf,
    upgraded: PathBuf,
}

impl Inventories {
    fn write() -> Result<Inventories> {
        let text =
            fs::read_to_string(workspace::root().join("fixtures/inventories/aws-t4-two.yaml"))?;
        let end = text.find("\n- luid: 7098126").context("the fixture has the second adapter")?;
        let write = |name: &str, text: &str| {
            let path = workspace::target_dir().join("wine").join(name);
            fs::write(&path, text).map(|()| path)
        };
        Ok(Inventories {
            first: write("first.yaml", &text[..=end])?,
            both: write("both.yaml", &text)?,
            upgraded: write("upgraded.yaml", &text.replace(SECOND, "8000001"))?,
        })
    }
}

fn arrival_removal_and_return(programs: &Programs) -> Result<()> {
    let inventories = Inventories::write()?;
    programs.host.set(&inventories.first)?;
    let mut daemon = Daemon::start(&mut programs.windows(&["serve"]))?;
    daemon.expect_line(&["device is healthy", FIRST])?;
    programs.host.set(&inventories.both)?;
    daemon.expect_line(&["device is healthy", SECOND])?;
    programs.host.set(&inventories.first)?;
    daemon.expect_line(&["device is unhealthy", "1&E0"])?;
    programs.host.set(&inventories.upgraded)?;
    daemon.expect_line(&["device is healthy", "1&E0", "8000001"])?;
    daemon.expect_running()
}

fn burst(programs: &Programs) -> Result<()> {
    let inventories = Inventories::write()?;
    programs.host.set(&inventories.both)?;
    let mut daemon = Daemon::start(&mut programs.windows(&["serve"]))?;
    daemon.expect_line(&["device is healthy", SECOND])?;
    for _ in 0..20 {
        programs.host.set_adapters(&inventories.first)?;
        programs.host.set_adapters(&inventories.both)?;
    }
    programs.host.set_adapters(&inventories.upgraded)?;
    programs.host.set(&inventories.first)?;
    daemon.expect_line(&["device is unhealthy", "1&E0"])?;
    programs.host.set(&inventories.both)?;
    daemon.expect_line(&["device is healthy", SECOND])?;
    daemon.expect_running()
}

/// The D3DKMT functions have loaded gdi32.dll and user32.dll by then.
fn stopped_like_a_container(programs: &Programs) -> Result<()> {
    let inventories = Inventories::write()?;
    programs.host.set(&inventories.both)?;
    let mut daemon = Daemon::start(&mut programs.windows(&["serve"]))?;
    daemon.expect_line(&["starting"])?;
    programs.host.send_shutdown("directx-device-plugin.exe")?;
    daemon.expect_line(&["shutting down", "signal=\"shutdown\""])?;
    daemon.expect_success()
}

/// A running daemon and the lines of its log. It is killed when it is dropped.
pub(super) struct Daemon {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Daemon {
    pub(super) fn start(command: &mut Command) -> Result<Daemon> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let log = BufReader::new(child.stderr.take().expect("standard error is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Daemon { child, lines, seen: Vec::new() })
    }

    /// Waits for a log line that contains all of `words`.
    pub(super) fn expect_line(&mut self, words: &[&str]) -> Result<()> {
        let end = Instant::now() + DEADLINE;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            let found = words.iter().all(|word| line.contains(word));
            self.seen.push(line);
            if found {
                return Ok(());
            }
        }
        bail!("no log line contains {words:?}; the log is\n{}", self.seen.join("\n"))
    }

    /// Waits until the daemon exits with 0.
    fn expect_success(&mut self) -> Result<()> {
        let end = Instant::now() + DEADLINE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the daemon exited with {status}");
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("the daemon does not exit")
    }

    pub(super) fn expect_running(&mut self) -> Result<()> {
        let status = self.child.try_wait()?;
        ensure!(status.is_none(), "the daemon has exited; its log is\n{}", self.seen.join("\n"));
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It fails only if the daemon has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
