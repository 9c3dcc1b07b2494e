//! One trial: a daemon, a well-behaved kubelet, and one or more attacks at the same time.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use daemon_bed::{Node, Program, Sample, Shape};
use device_plugin::KUBELET_SOCKET;

use crate::attacks::{Attack, Host, Kubelet};
use crate::log_reader::{LogFigures, LogOutput, LogReader};
use crate::probe::Probe;
use crate::target::{HANGS, Target};

/// The most that the daemon may occupy, in MiB, also while it keeps a host with 1,000 adapters.
const MEMORY_MIB: f64 = 128.0;

/// How many files more than before may be open after an attack.
const RETAINED_FILES: usize = 16;

/// The longest log line in bytes: each of its values is limited.
const LINE_BYTES: usize = 65 * 1024;

/// How long attacks take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Times {
    /// Each attack.
    pub(crate) attack: Duration,
    /// All attacks together.
    pub(crate) together: Duration,
}

/// What was observed.
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// How often the attacks repeated what they do.
    pub(crate) actions: u64,
    /// The times of `Allocate` for the well-behaved kubelet in milliseconds.
    pub(crate) allocate: Option<Sample>,
    pub(crate) registrations: u32,
    pub(crate) peak_mib: f64,
    pub(crate) final_mib: f64,
    pub(crate) lines_per_second: f64,
    pub(crate) violations: Vec<String>,
}

impl Outcome {
    /// The outcome with another name.
    pub(crate) fn named(self, name: &'static str) -> Outcome {
        Outcome { name, about: "all attacks that can be combined, at the same time", ..self }
    }
}

type Running = Vec<JoinHandle<Result<u64>>>;

/// Runs attacks against a new daemon.
pub(crate) fn run(program: &Path, attacks: &[Attack], time: Duration) -> Result<Outcome> {
    let first = attacks.first().context("there is no attack")?;
    // If all attacks run together, the log stalls as well.
    let log = if attacks.len() > 1 { LogOutput::Stalled } else { first.log };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the tokio runtime")?;
    let node = Node::new(Shape { replicas: 8192, files: 16 })?;
    node.configure(&(first.configuration)())?;
    let mut daemon = Program::start_with(program, &node, first.arguments, log.stdio()?)?;
    let reader = log.read(daemon.take_log());
    let trial = Trial { attacks, time, program };
    runtime.block_on(trial.observe(node, daemon, reader))
}

struct Trial<'a> {
    attacks: &'a [Attack],
    time: Duration,
    program: &'a Path,
}

impl Trial<'_> {
    async fn observe(&self, node: Node, daemon: Program, log: LogReader) -> Result<Outcome> {
        let mut probe = Some(Probe::start(&node, 8192).await?);
        let files_before = daemon.open_files().context("no `/proc`")?;
        let replicas = probe.as_ref().map(|probe| probe.replicas().to_vec()).unwrap_or_default();
        if self.attacks[0].kubelet == Kubelet::Afterwards {
            probe = None;
            std::fs::remove_file(node.directory().join(KUBELET_SOCKET))?;
        }
        let target = Arc::new(Target {
            program: self.program.to_owned(),
            replicas,
            node,
            until: Instant::now() + self.time,
        });
        let running = self.attacks.iter().map(|attack| {
            let (run, target) = (attack.run, Arc::clone(&target));
            thread::spawn(move || run(&target))
        });
        let running: Running = running.collect();
        let mut observed = Observed { daemon, log, probe, files_before, violations: Vec::new() };
        let actions = observed.attacked_by(running, &target).await;
        self.conclude(observed, &target, actions).await
    }

    async fn conclude(
        &self,
        mut observed: Observed,
        target: &Target,
        actions: u64,
    ) -> Result<Outcome> {
        observed.check_host(target, self.attacks[0].leaves).await;
        observed.check_process()?;
        let (peak, last) = (observed.daemon.peak(), observed.daemon.resident());
        observed.stop();
        observed.log.finish();
        // On a busy machine a trial takes longer.
        let seconds = observed.daemon.started.elapsed().as_secs_f64();
        let lines_per_second = f64::from(observed.log.figures().lines) / seconds;
        observed.check_log();
        let allocate = observed.probe.as_ref().and_then(Probe::times);
        let registrations = observed.probe.as_ref().map_or(0, |probe| probe.registrations);
        Ok(Outcome {
            name: self.attacks[0].name,
            about: self.attacks[0].about,
            actions,
            allocate,
            registrations,
            peak_mib: peak.unwrap_or(f64::NAN),
            final_mib: last.unwrap_or(f64::NAN),
            lines_per_second,
            violations: observed.violations,
        })
    }
}

/// A daemon under observation.
struct Observed {
    daemon: Program,
    log: LogReader,
    probe: Option<Probe>,
    files_before: usize,
    violations: Vec<String>,
}

impl Observed {
    fn check(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.violations.push(format!("{error:#}"));
        }
    }

    /// Allocates devices until the attacks are over, and returns how often they repeated what they
    /// do.
    async fn attacked_by(&mut self, running: Running, target: &Target) -> u64 {
        let is_over = || running.iter().all(JoinHandle::is_finished);
        if let Some(probe) = &mut self.probe {
            let result = probe.allocate_until(is_over).await;
            self.check(result);
        }
        let mut actions = 0;
        for attack in running {
            match attack.join() {
                Ok(Ok(count)) => actions += count,
                Ok(Err(error)) => self.violations.push(format!("{error:#}")),
                Err(_) => self.violations.push("the attack panicked".to_owned()),
            }
        }
        self.log.resume();
        if self.probe.is_none() {
            let _ = std::fs::remove_file(target.node.directory().join(KUBELET_SOCKET));
            match Probe::start(&target.node, 8192).await {
                Ok(probe) => self.probe = Some(probe),
                Err(error) => self.violations.push(format!("no registration: {error:#}")),
            }
        }
        actions
    }

    /// Checks that the kubelet knows what the attack left, and that it can allocate.
    async fn check_host(&mut self, target: &Target, leaves: Host) {
        let Some(probe) = &mut self.probe else { return };
        let mut result = probe.allocate(0).await;
        if leaves == Host::FirstGpuUnhealthy {
            result = result.and(probe.wait_for_unhealthy_gpu().await);
        } else if probe.fewest_healthy < target.replicas.len() {
            let fewest = probe.fewest_healthy;
            self.violations.push(format!("only {fewest} replicas were healthy"));
        }
        self.check(result);
    }

    /// Waits until the files are closed, and checks the peak of the memory.
    fn check_process(&mut self) -> Result<()> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.daemon.ended()? {
                self.violations.push(format!("the daemon ended with {status}"));
                return Ok(());
            }
            let (files, before) = (self.daemon.open_files(), self.files_before);
            if files.is_some_and(|files| files <= before + RETAINED_FILES) {
                break;
            }
            if since.elapsed() > HANGS {
                self.violations.push(format!("{files:?} open files, before: {before}"));
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let peak = self.daemon.peak().unwrap_or(f64::INFINITY);
        if peak >= MEMORY_MIB {
            self.violations.push(format!("{peak:.0} MiB of memory, limit {MEMORY_MIB} MiB"));
        }
        Ok(())
    }

    fn check_log(&mut self) {
        let LogFigures { longest, unprintable, .. } = self.log.figures();
        if let Some(line) = unprintable {
            self.violations.push(format!("control characters in the log: {line:?}"));
        }
        if longest > LINE_BYTES {
            self.violations.push(format!("a log line of {longest} bytes"));
        }
    }

    /// Checks that the daemon ends when it is stopped, and removes its sockets.
    fn stop(&mut self) {
        let result = terminate(&mut self.daemon);
        self.check(result);
        self.daemon.kill();
    }
}

fn terminate(daemon: &mut Program) -> Result<()> {
    // `kill` is a part of the shell; a minimal Debian has no program for it.
    let kill = format!("kill -TERM {}", daemon.id());
    Command::new("sh").args(["-c", &kill]).status().context("cannot run `sh`")?;
    let since = Instant::now();
    loop {
        if let Some(status) = daemon.ended()? {
            ensure!(status.success(), "the stopped daemon ended with {status}");
            return Ok(());
        }
        ensure!(since.elapsed() < HANGS, "the daemon does not end when stopped");
        thread::sleep(Duration::from_millis(20));
    }
}
