//! The daemon on a host that changes. Wine has no `AF_UNIX`, so no kubelet hears of it:
//! what is watched is what the daemon says of its device set.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::Test;
use super::programs::Programs;
use crate::workspace;

/// Longer than the daemon takes to see anything, on a slow machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// The tests, by name.
pub(super) fn tests() -> Vec<Test> {
    vec![
        Test::new("serve: arrival, removal and return", arrival_removal_and_return),
        Test::new("serve: a burst of changes", burst),
    ]
}

const FIRST: &str = "7048070";
const SECOND: &str = "7098126";

/// Hosts with the first, with both, and with both after a driver upgrade of the second.
struct Hosts {
    first: PathBuf,
    both: PathBuf,
    upgraded: PathBuf,
}

impl Hosts {
    fn write() -> Result<Hosts> {
        let text =
            fs::read_to_string(workspace::root().join("fixtures/inventories/aws-t4-two.yaml"))?;
        let end = text.find("\n- luid: 7098126").context("the fixture has the second adapter")?;
        let write = |name: &str, text: &str| {
            let path = workspace::target_dir().join("wine").join(name);
            fs::write(&path, text).map(|()| path)
        };
        Ok(Hosts {
            first: write("first.yaml", &text[..=end])?,
            both: write("both.yaml", &text)?,
            upgraded: write("upgraded.yaml", &text.replace(SECOND, "8000001"))?,
        })
    }
}

fn arrival_removal_and_return(programs: &Programs) -> Result<()> {
    let hosts = Hosts::write()?;
    programs.bed.set(&hosts.first)?;
    let mut daemon = Daemon::start(&mut programs.windows(&["serve"]))?;
    daemon.says(&["device is healthy", FIRST])?;
    programs.bed.set(&hosts.both)?;
    daemon.says(&["device is healthy", SECOND])?;
    programs.bed.set(&hosts.first)?;
    daemon.says(&["device is unhealthy", "1&E0"])?;
    programs.bed.set(&hosts.upgraded)?;
    daemon.says(&["device is healthy", "1&E0", "8000001"])?;
    daemon.runs()
}

fn burst(programs: &Programs) -> Result<()> {
    let hosts = Hosts::write()?;
    programs.bed.set(&hosts.both)?;
    let mut daemon = Daemon::start(&mut programs.windows(&["serve"]))?;
    daemon.says(&["device is healthy", SECOND])?;
    for _ in 0..20 {
        programs.bed.show(&hosts.first)?;
        programs.bed.show(&hosts.both)?;
    }
    programs.bed.show(&hosts.upgraded)?;
    programs.bed.set(&hosts.first)?;
    daemon.says(&["device is unhealthy", "1&E0"])?;
    programs.bed.set(&hosts.both)?;
    daemon.says(&["device is healthy", SECOND])?;
    daemon.runs()
}

/// A daemon and the lines of its log. It is ended when it is dropped.
struct Daemon {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Daemon {
    fn start(command: &mut Command) -> Result<Daemon> {
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
        Ok(Daemon { child, lines, heard: Vec::new() })
    }

    /// Waits for a line with all of `words`.
    fn says(&mut self, words: &[&str]) -> Result<()> {
        let end = Instant::now() + DEADLINE;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            let found = words.iter().all(|word| line.contains(word));
            self.heard.push(line);
            if found {
                return Ok(());
            }
        }
        bail!("no line has {words:?}; it said\n{}", self.heard.join("\n"))
    }

    fn runs(&mut self) -> Result<()> {
        let status = self.child.try_wait()?;
        ensure!(status.is_none(), "it has ended; it said\n{}", self.heard.join("\n"));
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // An error says that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
