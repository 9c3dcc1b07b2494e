//! Attacks the daemon from outside, as a client, a kubelet or a user of the node could, and checks
//! that it keeps serving.
//!
//! Prints a table and, with `--write`, writes it between the markers of a page. An attack fails if an
//! invariant is violated: the daemon ends, a well-behaved kubelet loses its registration or gets a
//! wrong answer or none, the peak memory or the open files exceed their limits, or the log contains
//! control characters. Times and the memory afterwards are only reported, because they depend on the
//! machine's load. `cargo xtask attack` builds and runs the full form, `cargo xtask test attack` the
//! short one.

mod answer;
mod attacks;
mod child_command;
mod frames;
mod log_reader;
mod probe;
mod report;
mod target;
mod trial;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::attacks::{ATTACKS, Attack};
use crate::trial::Times;

const USAGE: &str = "usage: adversary PROGRAM [--short] [--only ATTACK] [--write FILE]";

/// The form that `cargo xtask attack` runs, against the release program.
const FULL: Times = Times { attack: Duration::from_secs(10), together: Duration::from_secs(30) };

/// The form for the tests, against the debug program. Attacks that can be combined run only
/// together.
const SHORT: Times = Times { attack: Duration::from_secs(1), together: Duration::from_secs(8) };

/// The name of the trial with all attacks at the same time.
const TOGETHER: &str = "all-together";

/// The parsed command line.
#[derive(PartialEq, Debug)]
struct Request {
    program: PathBuf,
    times: Times,
    only: Option<String>,
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    daemon_bed::run(USAGE, parse(std::env::args_os().skip(1)), attack)
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Request> {
    let mut request = Request {
        program: arguments.next().context("the path of the program is missing")?.into(),
        times: FULL,
        only: None,
        write: None,
    };
    while let Some(argument) = arguments.next() {
        match argument.to_string_lossy().as_ref() {
            "--short" => request.times = SHORT,
            "--only" => {
                let name = arguments.next().context("`--only` requires an attack")?;
                request.only = Some(known(&name.to_string_lossy())?);
            }
            "--write" => {
                request.write = Some(arguments.next().context("`--write` requires a file")?.into());
            }
            other => bail!("unknown argument `{other}`"),
        }
    }
    Ok(request)
}

/// Returns the name of an attack if there is one with this name.
fn known(name: &str) -> Result<String> {
    let names: Vec<&str> = ATTACKS.iter().map(|attack| attack.name).chain([TOGETHER]).collect();
    ensure!(
        names.contains(&name),
        "unknown attack `{name}`\nhint: the attacks are {}",
        names.join(", ")
    );
    Ok(name.to_owned())
}

fn attack(request: &Request) -> Result<()> {
    ensure!(
        cfg!(target_os = "linux"),
        "the attacks use FIFOs, signals and `/proc`\nhint: run them on Linux"
    );
    let is_chosen = |name: &str, by_default: bool| {
        request.only.as_ref().map_or(by_default, |only| only == name)
    };
    let mut outcomes = Vec::new();
    print!("{}", report::heading());
    let is_short = request.times == SHORT;
    for attack in ATTACKS.iter().filter(|a| is_chosen(a.name, !is_short || !a.joins_others)) {
        let attacks = std::slice::from_ref(attack);
        let outcome = trial::run(&request.program, attacks, request.times.attack)?;
        print!("{}", report::row(&outcome));
        outcomes.push(outcome);
    }
    if is_chosen(TOGETHER, true) {
        let all: Vec<Attack> = ATTACKS.iter().filter(|a| a.joins_others).copied().collect();
        let outcome = trial::run(&request.program, &all, request.times.together)?.named(TOGETHER);
        print!("{}", report::row(&outcome));
        outcomes.push(outcome);
    }
    if let Some(page) = &request.write {
        report::write(page, &outcomes, &request.times)?;
    }
    let failed: Vec<&str> =
        outcomes.iter().filter(|o| !o.violations.is_empty()).map(|o| o.name).collect();
    ensure!(failed.is_empty(), "attacks that violated an invariant: {}", failed.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Request> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn requires_only_the_program() {
        let full = parsed(&["p"]).unwrap();
        assert_eq!((full.times, full.only, full.write), (FULL, None, None));
        let short = parsed(&["p", "--short", "--only", TOGETHER, "--write", "f"]).unwrap();
        assert_eq!((short.times, short.only), (SHORT, Some(TOGETHER.to_owned())));
        for bad in [&[][..], &["p", "--write"], &["p", "x"], &["p", "--only", "x"]] {
            assert!(parsed(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = ATTACKS.iter().map(|a| a.name).collect();
        assert_eq!(names.len(), ATTACKS.len());
    }
}
