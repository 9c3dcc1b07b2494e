//! `cargo xtask test`: runs the steps, also after one has failed, and reports each.

use std::env::consts::OS;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::steps::{STEPS, Step, When};

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
    let mut report = String::new();
    let [mut passed, mut failed, mut skipped] = [0; 3];
    for (index, step) in steps.iter().enumerate() {
        println!("[{}/{}] {}: {}", index + 1, steps.len(), step.name, step.about);
        let step_start = Instant::now();
        let verdict = perform(step);
        let time = clock(step_start.elapsed());
        let (word, count, remark) = match verdict {
            Verdict::Passed => ("ok", &mut passed, &*time),
            Verdict::Failed => ("FAILED", &mut failed, &*time),
            Verdict::Skipped(reason) => ("skipped", &mut skipped, reason),
        };
        *count += 1;
        let line = format!("{word:<7} {:<10} {remark:>6}\n", step.name);
        print!("{line}");
        report += &line;
    }
    println!("\n{report}in {}", clock(start.elapsed()));
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
