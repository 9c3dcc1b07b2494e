//! Tests of the Windows programs under Wine.
//!
//! The registry, `SetupAPI` and files are Wine's. `dxcore_double` provides the adapters
//! of an inventory, and `wine_bed` makes its devices, driver keys and driver files. The
//! tests compare what a Windows program prints with what the same program prints on this
//! machine for the same inventory.

mod colors;
mod crate_tests;
mod daemon;
mod device_manager;
mod discovery_tools;
mod doctor;
mod exit_status;
mod gpu_probe;
mod host_variants;
mod large_inventories;
mod launcher_files;
mod programs;
mod round_trip;
mod service;
mod test_case;
mod visible;
mod visible_32;
mod visible_exits;
mod visible_parents;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};

use self::programs::Programs;
use self::test_case::{Needs, TestCase};
use crate::prerequisites;
use crate::skipped_part::SkippedPart;
use crate::wine::{SimulatedHost, Wine};
use crate::workspace::target_dir;

/// `cargo xtask wine-suite`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let part = match arguments {
        [] => "",
        [part] if !part.to_string_lossy().starts_with('-') => part.to_str().unwrap_or_default(),
        _ => bail!("unexpected arguments\nhint: `wine-suite` accepts one part of a test name"),
    };
    perform(part)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs every test that this Wine can run.
pub(crate) fn check() -> Result<Vec<SkippedPart>> {
    perform("")
}

/// Runs the tests whose names contain `part`, and prints a line for each. Returns those that
/// this Wine cannot run.
fn perform(part: &str) -> Result<Vec<SkippedPart>> {
    prerequisites::for_windows_builds()?;
    let wine = Wine::ready("suite")?;
    let _lock = wine.lock()?;
    let programs = Programs::build(SimulatedHost::new(&wine)?)?;
    let tests = tests(part)?;
    // After the builds, which can take longer than an idle server runs. A server that Wine
    // starts itself stops with its program, and forgets the devices that `wine_bed` made.
    let _server = wine.start_server()?;
    let (tests, skipped) = runnable(tests, |needs| match needs {
        Needs::Nothing => Ok(true),
        Needs::Sockets => device_manager::has_sockets(&programs),
        Needs::Programs32 => visible_32::can_run(&programs),
    })?;
    for SkippedPart { part, reason } in &skipped {
        println!("skipped {part:<58} {reason}");
    }
    let mut failed = 0;
    for test in &tests {
        let start = Instant::now();
        let result = programs.host.reset().and_then(|()| (test.run)(&programs));
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        println!("{verdict:<7} {:<58} {:>5.1} s", test.name, start.elapsed().as_secs_f64());
        if let Err(error) = result {
            failed += 1;
            println!("{error:#}");
        }
    }
    println!("{} passed, {failed} failed, {} skipped", tests.len() - failed, skipped.len());
    if failed > 0 {
        bail!("{failed} of {} tests failed", tests.len());
    }
    Ok(skipped)
}

/// The tests that this Wine can run, and the others. `has` is asked once for each thing that a
/// test needs.
fn runnable(
    mut tests: Vec<TestCase>,
    has: impl Fn(Needs) -> Result<bool>,
) -> Result<(Vec<TestCase>, Vec<SkippedPart>)> {
    let mut skipped = Vec::new();
    for needs in [Needs::Sockets, Needs::Programs32] {
        if !tests.iter().any(|test| test.needs == needs) || has(needs)? {
            continue;
        }
        let (others, run_here) = tests.into_iter().partition(|test| test.needs == needs);
        let others: Vec<TestCase> = others;
        let reason = needs.lacking().unwrap_or_default();
        skipped.extend(others.into_iter().map(|test| SkippedPart::new(test.name, reason)));
        tests = run_here;
    }
    Ok((tests, skipped))
}

/// The tests whose names contain `part`; an error if there is none.
fn tests(part: &str) -> Result<Vec<TestCase>> {
    let mut tests = crate_tests::tests()?;
    tests.extend(round_trip::tests(&large_inventories::write(&target_dir().join("wine"))?)?);
    tests.extend(host_variants::tests());
    tests.extend(daemon::tests());
    tests.extend(service::tests());
    tests.extend(colors::tests());
    tests.extend(exit_status::tests());
    tests.extend(device_manager::tests()?);
    tests.extend(doctor::tests());
    tests.extend(discovery_tools::tests()?);
    tests.extend(gpu_probe::tests());
    tests.extend(visible::tests());
    tests.extend(visible_32::tests());
    tests.extend(launcher_files::tests());
    tests.extend(visible_parents::tests());
    tests.extend(visible_exits::tests());
    tests.retain(|test| test.name.contains(part));
    if tests.is_empty() {
        bail!("no test name contains `{part}`");
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(lacks: Needs) -> (Vec<String>, Vec<String>) {
        let test = |name: &str| TestCase::new(name, |_| Ok(()));
        let tests =
            vec![test("plain"), test("sockets").needs_sockets(), test("32-bit").needs_32_bit()];
        let (tests, skipped) = runnable(tests, |needs| Ok(needs != lacks)).unwrap();
        let run_here = tests.into_iter().map(|test| test.name);
        (run_here.collect(), skipped.into_iter().map(|skipped| skipped.part).collect())
    }

    #[test]
    fn tests_run_only_where_wine_has_what_they_need() {
        for (lacks, run_here, skipped) in [
            (Needs::Nothing, &["plain", "sockets", "32-bit"][..], &[][..]),
            (Needs::Sockets, &["plain", "32-bit"], &["sockets"]),
            (Needs::Programs32, &["plain", "sockets"], &["32-bit"]),
        ] {
            let (found, left_out) = names(lacks);
            assert_eq!(found, run_here);
            assert_eq!(left_out, skipped);
        }
    }

    #[test]
    fn wine_is_asked_only_for_what_a_test_needs() {
        let plain = vec![TestCase::new("plain", |_| Ok(()))];
        assert_eq!(runnable(plain, |_| bail!("not needed")).unwrap().0.len(), 1);
        let sockets = vec![TestCase::new("sockets", |_| Ok(())).needs_sockets()];
        assert!(runnable(sockets, |_| bail!("broken")).is_err());
    }
}
