//! Tests of the Windows programs under Wine.
//!
//! The registry, `SetupAPI` and files are Wine's. `dxcore_double` provides the adapters
//! of an inventory, and `wine_bed` makes its devices, driver keys and driver files. The
//! tests compare what a Windows program prints with what the same program prints on this
//! machine for the same inventory.

mod colors;
mod crate_tests;
mod daemon;
mod discovery_tools;
mod doctor;
mod host_variants;
mod large_inventories;
mod programs;
mod round_trip;
mod service;
mod test_case;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};

use self::programs::Programs;
use self::test_case::TestCase;
use crate::prerequisites;
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

/// Runs every test.
pub(crate) fn check() -> Result<()> {
    if cfg!(windows) {
        println!("skipped: on Windows these tests would change the real machine");
        return Ok(());
    }
    perform("")
}

/// Runs the tests whose names contain `part`, and prints a line for each.
fn perform(part: &str) -> Result<()> {
    prerequisites::for_windows_builds()?;
    let wine = Wine::ready("suite")?;
    let _lock = wine.lock()?;
    let programs = Programs::build(SimulatedHost::new(&wine)?)?;
    let tests = tests(part)?;
    // After the builds, which can take longer than an idle server runs. A server that Wine
    // starts itself stops with its program, and forgets the devices that `wine_bed` made.
    let _server = wine.start_server()?;
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
    println!("{} passed, {failed} failed", tests.len() - failed);
    if failed > 0 {
        bail!("{failed} of {} tests failed", tests.len());
    }
    Ok(())
}

/// The tests whose names contain `part`; an error if there is none.
fn tests(part: &str) -> Result<Vec<TestCase>> {
    let mut tests = crate_tests::tests()?;
    tests.extend(round_trip::tests(&large_inventories::write(&target_dir().join("wine"))?)?);
    tests.extend(host_variants::tests());
    tests.extend(daemon::tests());
    tests.extend(service::tests());
    tests.extend(colors::tests());
    tests.extend(doctor::tests());
    tests.extend(discovery_tools::tests()?);
    tests.retain(|test| test.name.contains(part));
    if tests.is_empty() {
        bail!("no test name contains `{part}`");
    }
    Ok(tests)
}
