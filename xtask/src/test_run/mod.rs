//! `cargo xtask test`: checks the whole workspace, step by step.
//!
//! Each step is one row of [`STEPS`] and can be run by its name. A run continues after a
//! failed step, so that one run reports every failure. What cannot run on this machine is
//! reported as skipped, with the reason.

mod outcome;
mod steps;

use std::env::consts::{ARCH, OS};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};

use self::outcome::{Outcome, Verdict, clock, report};
use self::steps::{Kind, Run, STEPS, Step};

/// What `cargo xtask test` is to do.
enum Request {
    List,
    Run(Vec<&'static Step>),
}

pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    match request(arguments)? {
        Request::List => {
            for step in STEPS {
                let quick = if step.kind == Kind::Quick { "quick" } else { "" };
                println!("{:<15} {:<6} {}", step.name, quick, step.about);
            }
            Ok(ExitCode::SUCCESS)
        }
        Request::Run(steps) => Ok(perform_all(&steps)),
    }
}

/// Reads the arguments. Named steps run in the order of [`STEPS`].
fn request(arguments: &[OsString]) -> Result<Request> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let (options, names): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.starts_with('-'));
    if let Some(option) = options.iter().find(|o| !["--list", "--quick"].contains(&o.as_ref())) {
        bail!("unknown option `{option}`\nhint: the options are `--list` and `--quick`");
    }
    if let Some(name) = names.iter().find(|name| STEPS.iter().all(|s| ***name != *s.name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("unknown step `{name}`\nhint: the steps are {}", known.join(", "));
    }
    if let Some(option) = options.first()
        && let Some(other) = words.iter().find(|word| word != option)
    {
        bail!("`{option}` cannot be combined with `{other}`");
    }
    let is_chosen = |step: &&Step| names.iter().any(|name| ***name == *step.name);
    Ok(match options.first().map(AsRef::as_ref) {
        Some("--list") => Request::List,
        Some(_) => Request::Run(STEPS.iter().filter(|s| s.kind == Kind::Quick).collect()),
        None if names.is_empty() => Request::Run(STEPS.iter().collect()),
        None => Request::Run(STEPS.iter().filter(is_chosen).collect()),
    })
}

/// Runs the steps and prints the report; the exit code is a failure if any step failed.
fn perform_all(steps: &[&'static Step]) -> ExitCode {
    let start = Instant::now();
    let mut outcomes = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let place = format!("[{}/{}]", index + 1, steps.len());
        println!("{place} {}: {} ({} elapsed)", step.name, step.about, clock(start.elapsed()));
        let outcome = perform(step);
        match &outcome.verdict {
            Verdict::Failed(error) => println!("error: {error:#}"),
            Verdict::Skipped(reason) => println!("skipped: {reason}"),
            Verdict::Passed(_) => {}
        }
        println!("{place} {}: {} in {}", step.name, outcome.verdict.word(), clock(outcome.time));
        outcomes.push(outcome);
    }
    print!("\n{}", report(&outcomes, start.elapsed()));
    let has_failed = outcomes.iter().any(|outcome| outcome.verdict.is_failure());
    if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn perform(step: &Step) -> Outcome {
    let start = Instant::now();
    let verdict = step.needs.missing(OS, ARCH).map_or_else(|| run(step.run), Verdict::Skipped);
    Outcome { step: step.name, time: start.elapsed(), verdict }
}

fn run(step: Run) -> Verdict {
    let result = match step {
        Run::Whole(check) => check().map(|()| Vec::new()),
        Run::Parts(check) => check(),
    };
    result.map_or_else(Verdict::Failed, Verdict::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(words: &[&str]) -> Vec<&'static str> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        match request(&arguments).unwrap() {
            Request::Run(steps) => steps.iter().map(|step| step.name).collect(),
            Request::List => panic!("{words:?} lists the steps"),
        }
    }

    fn error(words: &[&str]) -> String {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        request(&arguments).err().unwrap().to_string()
    }

    #[test]
    fn named_steps_run_in_the_order_of_the_list() {
        assert_eq!(steps(&["unit", "fmt"]), ["fmt", "unit"]);
        assert_eq!(steps(&[]).len(), STEPS.len());
    }

    #[test]
    fn quick_runs_only_what_rust_brings() {
        assert_eq!(steps(&["--quick"]), ["fmt", "clippy", "unit"]);
    }

    #[test]
    fn a_failed_part_fails_the_step() {
        let failing: fn() -> Result<Vec<_>> = || bail!("no network");
        assert!(run(Run::Parts(failing)).is_failure());
        assert!(run(Run::Whole(|| bail!("broken"))).is_failure());
        assert_eq!(run(Run::Whole(|| Ok(()))).word(), "ok");
    }

    #[test]
    fn list_runs_nothing() {
        assert!(matches!(request(&["--list".into()]), Ok(Request::List)));
    }

    #[test]
    fn invalid_arguments_are_named_with_a_hint() {
        assert!(error(&["lint"]).starts_with("unknown step `lint`\nhint: the steps are fmt, "));
        assert!(error(&["--fast"]).starts_with("unknown option `--fast`\nhint: "));
        for words in [["--quick", "kubelet"], ["kubelet", "--quick"]] {
            assert_eq!(error(&words), "`--quick` cannot be combined with `kubelet`");
        }
        let options = error(&["--quick", "--list"]);
        assert_eq!(options, "`--quick` cannot be combined with `--list`");
    }
}
