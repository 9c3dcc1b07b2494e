//! The Windows programs under Wine, test by test.
//!
//! The registry, `SetupAPI` and files are Wine's; the adapters are those of an
//! inventory, played by `dxcore_double`; devices, driver keys and driver files are
//! made by `wine_bed`. What the programs say is compared with what the same program
//! says on this machine about the same inventory.

mod bed;
mod cases;
mod crate_tests;
mod daemon;
mod doctor;
mod generated;
mod programs;
mod round_trip;
mod tools;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};

pub(crate) use bed::Bed;
use programs::Programs;

use crate::setup;
use crate::wine::Wine;
use crate::workspace::target_dir;

/// One test.
struct Test {
    name: String,
    run: Run,
}

type Run = Box<dyn Fn(&Programs) -> Result<()>>;

impl Test {
    fn new(name: impl Into<String>, run: impl Fn(&Programs) -> Result<()> + 'static) -> Test {
        Test { name: name.into(), run: Box::new(run) }
    }
}

/// `cargo xtask wine-suite`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let part = match arguments {
        [] => "",
        [part] if !part.to_string_lossy().starts_with('-') => part.to_str().unwrap_or_default(),
        _ => bail!("`wine-suite` takes at most a part of the names of tests"),
    };
    perform(part)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs every test.
pub(crate) fn run() -> Result<()> {
    if cfg!(windows) {
        println!("left out: this is Windows, where the bed would change the real machine");
        return Ok(());
    }
    perform("")
}

/// Runs the tests whose names contain `part`, and prints a line for each.
fn perform(part: &str) -> Result<()> {
    setup::for_windows_builds()?;
    let wine = Wine::ready("suite")?;
    let _turn = wine.alone()?;
    let _server = wine.serve()?;
    let programs = Programs::build(Bed::new(&wine)?)?;
    let mut tests = crate_tests::tests()?;
    tests.extend(round_trip::tests(&generated::write(&target_dir().join("wine"))?)?);
    tests.extend(cases::tests());
    tests.extend(daemon::tests());
    tests.extend(doctor::tests());
    tests.extend(tools::tests()?);
    tests.retain(|test| test.name.contains(part));
    if tests.is_empty() {
        bail!("no test's name contains `{part}`");
    }
    let mut failed = 0;
    for test in &tests {
        let start = Instant::now();
        let result = programs.bed.reset().and_then(|()| (test.run)(&programs));
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
