//! `cargo xtask test`: runs the steps, also after one has failed, and reports each.

use std::env;
use std::fmt;
use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wait4::Wait4;

use crate::steps::{CRATES, Need, STEPS, Step, When, set_up};

/// The steps that mostly wait. They run at the same time as the steps after them, but one after
/// another, because they compile the same packages and use the same folder of a kubelet.
const CONCURRENT: [&str; 5] = ["manifests", "kubelet", "cluster", "metrics", "kubelet-1.26"];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The steps to run [default: all but the nightly ones]
    steps: Vec<String>,
    /// Run only the steps that need nothing but Rust
    #[arg(long, conflicts_with_all = ["steps", "nightly"])]
    quick: bool,
    /// Run all steps, also those that take long
    #[arg(long, conflicts_with = "steps")]
    nightly: bool,
    /// List the steps and run nothing
    #[arg(long)]
    list: bool,
}

enum Verdict {
    Passed(Times),
    Failed(Times),
    /// The step does not run on this system.
    Skipped(String),
    /// What the step needs could not be set up.
    NotRun(String),
}

/// How long a step took, and how long the processors worked for it.
#[derive(Default)]
struct Times {
    clock: Duration,
    processor: Duration,
}

pub(crate) fn command(options: &Options) -> Result<ExitCode> {
    let steps = chosen(options)?;
    if options.list {
        for step in steps {
            println!("{:<15} {}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let start = Instant::now();
    let missing = set_up(&steps);
    let mut report = Report::default();
    println!("set up  {:>6}", clock(start.elapsed()));
    thread::scope(|scope| -> Result<()> {
        let mut concurrent = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            println!("[{}/{}] {}: {}", index + 1, steps.len(), step.name, step.about);
            if let Some(verdict) = skip_reason(step, &missing) {
                report.add(step, &verdict);
            } else if is_concurrent(step) && steps[index..].iter().any(|step| !is_concurrent(step))
            {
                let (output, child_output) = io::pipe().context("cannot create a pipe")?;
                scope.spawn(|| print_lines(step.name, output));
                concurrent.push((step, scope.spawn(|| perform(step, Some(child_output)))));
            } else {
                report.add(step, &perform(step, None)?);
            }
        }
        for (step, thread) in concurrent {
            let verdict = thread.join().expect("a thread that only waits")?;
            report.add(step, &verdict);
        }
        Ok(())
    })?;
    let Report { lines, processor, passed, failed, skipped } = report;
    println!("\n{:>30} processor\n{lines}", "time");
    println!("in {}, {} of processor time", clock(start.elapsed()), clock(processor));
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_concurrent(step: &Step) -> bool {
    CONCURRENT.contains(&step.name)
}

/// Held by each step that is concurrent.
static TURN: Mutex<()> = Mutex::new(());

/// Runs a step whose needs are set up, without a report.
pub(crate) fn step(name: &str) -> Result<()> {
    let step = STEPS.iter().find(|step| step.name == name);
    (step.with_context(|| format!("unknown step `{name}`"))?.run)()
}

/// `cargo xtask setup`: sets up what the steps need.
pub(crate) fn set_up_only(options: &Options) -> Result<()> {
    let failed = set_up(&chosen(options)?);
    if failed.iter().all(|need| need.is_optional) {
        return Ok(());
    }
    let names: Vec<&str> = failed.iter().map(|need| need.name).collect();
    bail!("cannot set up {}", names.join(", "))
}

#[derive(Default)]
struct Report {
    lines: String,
    processor: Duration,
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Report {
    fn add(&mut self, step: &Step, verdict: &Verdict) {
        let (word, count, remark) = match verdict {
            Verdict::Passed(times) => ("ok", &mut self.passed, times.to_string()),
            Verdict::Failed(times) => ("FAILED", &mut self.failed, times.to_string()),
            Verdict::Skipped(reason) => ("skipped", &mut self.skipped, reason.clone()),
            Verdict::NotRun(reason) => ("NOT RUN", &mut self.failed, reason.clone()),
        };
        *count += 1;
        if let Verdict::Passed(times) | Verdict::Failed(times) = verdict {
            self.processor += times.processor;
        }
        let line = format!("{word:<7} {:<15} {remark:>6}\n", step.name);
        print!("{line}");
        self.lines += &line;
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6} {:>9}", clock(self.clock), clock(self.processor))
    }
}

/// Why `step` does not run, or nothing if it runs.
fn skip_reason(step: &Step, missing: &[&Need]) -> Option<Verdict> {
    if let Some(reason) = step.skipped {
        return Some(Verdict::Skipped(reason.to_owned()));
    }
    let need = missing.iter().find(|need| {
        need.name == CRATES.name || step.needs.iter().any(|needed| needed.name == need.name)
    })?;
    let reason = format!("cannot set up {}, see above", need.name);
    Some(if need.is_optional { Verdict::Skipped(reason) } else { Verdict::NotRun(reason) })
}

/// Prints what a concurrent step prints, each line with the name of the step, because other steps
/// print at the same time.
fn print_lines(step: &str, output: PipeReader) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        println!("{step} | {}", String::from_utf8_lossy(&line));
    }
}

/// Runs a step as a separate process, whose processor time the system counts.
fn perform(step: &Step, output: Option<PipeWriter>) -> Result<Verdict> {
    let _turn = is_concurrent(step).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
    let start = Instant::now();
    // cargo removes the file for a moment when it builds the workspace.
    let program = match env::consts::OS {
        "linux" => "/proc/self/exe".into(),
        _ => env::current_exe().context("cannot find this program")?,
    };
    let mut command = Command::new(program);
    command.args(["step", step.name]);
    // git refuses to say whose version another user's checkout has, as in a container of a
    // workflow.
    let flags = env::var("GOFLAGS").unwrap_or_default();
    command.env("GOFLAGS", format!("{flags} -buildvcs=false"));
    if let Some(output) = output {
        command.stderr(output.try_clone().context("cannot share a pipe")?).stdout(output);
    }
    let mut child = command.spawn().context("cannot run this program again")?;
    // Its end of the pipe would keep the pipe open.
    drop(command);
    let end = child.wait4().context("cannot wait for a step")?;
    let processor = end.rusage.utime + end.rusage.stime;
    let times = Times { clock: start.elapsed(), processor };
    Ok(if end.status.success() { Verdict::Passed(times) } else { Verdict::Failed(times) })
}

/// The steps that are to run, in the order of [`STEPS`].
fn chosen(options: &Options) -> Result<Vec<&'static Step>> {
    if let Some(name) = options.steps.iter().find(|name| STEPS.iter().all(|s| **name != s.name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("unknown step `{name}`\nhint: the steps are {}", known.join(", "));
    }
    let chosen = STEPS.iter().filter(|step| match step.when {
        _ if !options.steps.is_empty() => options.steps.iter().any(|name| name == step.name),
        When::Quick => true,
        When::Full => !options.quick,
        When::Nightly => options.nightly,
    });
    Ok(chosen.collect())
}

/// Minutes and seconds, such as `2:05`.
fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}
