//! `cargo xtask test`: every check of the workspace, step by step.
//!
//! Each step is one row of [`STEPS`] and can be run alone by its name. All steps
//! run even if an earlier one failed, so one run tells everything.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::process::run;
use crate::workspace::{self, cargo};
use crate::{clients, deny, fuzz, kubelet_suite, setup, version_info, wine_suite};

/// One check.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<()>,
}

/// The checks in the order they run: cheap ones first.
const STEPS: &[Step] = &[
    Step { name: "fmt", about: "formatting", run: formatting },
    Step { name: "clippy", about: "lints, warnings denied", run: lints },
    Step { name: "doc", about: "documentation, warnings denied", run: documentation },
    Step { name: "deny", about: "licences and faults of dependencies", run: deny::perform },
    Step { name: "unit", about: "the tests of every crate", run: tests },
    Step { name: "fuzz", about: "every decoder, with inputs made up", run: fuzz::perform },
    Step { name: "kubelet", about: "a real kubelet's device manager", run: kubelet_suite::perform },
    Step { name: "windows-build", about: "everything, built for Windows", run: windows_build },
    Step { name: "clients", about: "the library's C++ and Go clients", run: clients::perform },
    Step { name: "wine", about: "the Windows programs under Wine", run: wine_suite::run },
];

pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    if arguments.iter().any(|argument| argument == "--list") {
        for step in STEPS {
            println!("{:<14} {}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let steps = chosen(arguments)?;
    let results: Vec<(&Step, Duration, Result<()>)> = steps.into_iter().map(perform).collect();
    Ok(report(&results))
}

/// The steps that are named, or all, in the order of [`STEPS`].
fn chosen(names: &[OsString]) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|s| *name != s.name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("`{}` is no step; the steps are {}", unknown.display(), known.join(", "));
    }
    Ok(STEPS.iter().filter(|s| names.is_empty() || names.iter().any(|n| n == s.name)).collect())
}

fn perform(step: &Step) -> (&Step, Duration, Result<()>) {
    println!("== {}: {}", step.name, step.about);
    let start = Instant::now();
    let result = (step.run)();
    if let Err(error) = &result {
        println!("error: {error:#}");
    }
    (step, start.elapsed(), result)
}

/// Prints a line a step and the sum; fails if any step did.
fn report(results: &[(&Step, Duration, Result<()>)]) -> ExitCode {
    println!();
    for (step, time, result) in results {
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        println!("{verdict:<7} {:<14} {:>7.1} s", step.name, time.as_secs_f64());
    }
    let failed = results.iter().filter(|(_, _, result)| result.is_err()).count();
    println!("{} passed, {failed} failed", results.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn formatting() -> Result<()> {
    setup::for_lints()?;
    run(cargo().args(["fmt", "--all", "--check"]))
}

fn lints() -> Result<()> {
    setup::for_lints()?;
    let clippy = || {
        let mut clippy = cargo();
        clippy.args(["clippy", "--quiet", "--workspace", "--all-targets"]);
        clippy
    };
    let deny = ["--", "--deny", "warnings"];
    run(clippy().args(deny))?;
    setup::for_windows_builds()?;
    run(clippy().args(["--target", workspace::WINDOWS_TARGET]).args(deny))
}

fn documentation() -> Result<()> {
    let arguments = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
    run(cargo().args(arguments).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn tests() -> Result<()> {
    run(cargo().args(["test", "--quiet", "--workspace", "--no-fail-fast"]))
}

fn windows_build() -> Result<()> {
    setup::for_windows_builds()?;
    let arguments = ["build", "--quiet", "--workspace", "--target", workspace::WINDOWS_TARGET];
    run(cargo().args(arguments))?;
    version_info::perform()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_run_in_their_own_order_however_they_are_named() {
        let named = chosen(&["unit".into(), "fmt".into()]).unwrap();
        assert_eq!(named.iter().map(|s| s.name).collect::<Vec<_>>(), ["fmt", "unit"]);
        assert_eq!(chosen(&[]).unwrap().len(), STEPS.len());
    }

    #[test]
    fn an_unknown_step_is_named_with_those_that_exist() {
        let error = chosen(&["lint".into()]).err().unwrap().to_string();
        assert!(error.contains("`lint`") && error.contains("clippy"), "{error}");
    }
}
