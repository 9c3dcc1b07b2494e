//! `cargo xtask test`: runs the steps, also after one has failed, and reports each.

use std::env::{consts::OS, current_exe};
use std::process::{Command, ExitCode, Output};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::steps::{STEPS, Step, When};

/// The steps that mostly wait, and so run beside those after them.
const BESIDE: [&str; 1] = ["kubernetes"];

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
    Passed,
    Failed,
    /// The step does not run on this system.
    Skipped(&'static str),
}

pub(crate) fn command(options: &Options) -> Result<ExitCode> {
    let steps = chosen(options)?;
    if options.list {
        for step in steps {
            println!("{:<10} {}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let start = Instant::now();
    let mut report = Report::default();
    let mut beside = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("[{}/{}] {}: {}", index + 1, steps.len(), step.name, step.about);
        let step_start = Instant::now();
        if BESIDE.contains(&step.name) && index + 1 < steps.len() {
            beside.push((step, step_start, start_beside(step)?));
            continue;
        }
        report.add(step, &perform(step), step_start.elapsed());
    }
    for (step, step_start, output) in beside {
        let (output, end) = output.join().expect("a thread that only waits")?;
        print!("{}", String::from_utf8_lossy(&output.stdout));
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        let passed = output.status.success();
        let verdict = if passed { Verdict::Passed } else { Verdict::Failed };
        report.add(step, &verdict, end - step_start);
    }
    let Report { lines, passed, failed, skipped } = report;
    println!("\n{lines}in {}", clock(start.elapsed()));
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Default)]
struct Report {
    lines: String,
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Report {
    fn add(&mut self, step: &Step, verdict: &Verdict, time: Duration) {
        let time = clock(time);
        let (word, count, remark) = match verdict {
            Verdict::Passed => ("ok", &mut self.passed, &*time),
            Verdict::Failed => ("FAILED", &mut self.failed, &*time),
            Verdict::Skipped(reason) => ("skipped", &mut self.skipped, *reason),
        };
        *count += 1;
        let line = format!("{word:<7} {:<10} {remark:>6}\n", step.name);
        print!("{line}");
        self.lines += &line;
    }
}

/// Runs a step in a separate process, so that its output does not mix with that of the others.
/// The thread returns the output and when the process ended.
fn start_beside(step: &Step) -> Result<JoinHandle<Result<(Output, Instant)>>> {
    let mut command = Command::new(current_exe().context("cannot find this program")?);
    command.args(["test", step.name]);
    Ok(thread::spawn(move || {
        let output = command.output().context("cannot run this program again")?;
        Ok((output, Instant::now()))
    }))
}

/// The steps that are to run, in the order of [`STEPS`].
fn chosen(options: &Options) -> Result<Vec<&'static Step>> {
    if let Some(name) = options.steps.iter().find(|name| STEPS.iter().all(|s| **name != s.name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("unknown step `{name}`\nhint: the steps are {}", known.join(", "));
    }
    let is_chosen = |step: &&Step| match step.when {
        _ if !options.steps.is_empty() => options.steps.iter().any(|name| name == step.name),
        When::Quick => true,
        When::Always => !options.quick,
        When::Nightly => options.nightly,
    };
    Ok(STEPS.iter().filter(is_chosen).collect())
}

fn perform(step: &Step) -> Verdict {
    if let Some(reason) = step.systems.missing(OS) {
        return Verdict::Skipped(reason);
    }
    match (step.run)() {
        Ok(()) => Verdict::Passed,
        Err(error) => {
            println!("error: {error:#}");
            Verdict::Failed
        }
    }
}

/// Minutes and seconds, such as `2:05`.
fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}
