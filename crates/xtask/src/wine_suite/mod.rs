//! The Windows programs under Wine, test by test.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::line;
use crate::wine::Wine;
use crate::workspace::{self, cargo};

/// Crates whose own tests have parts that only Windows runs.
const TESTED_ON_WINDOWS: [&str; 2] = ["uds", "dxcore_double"];

/// Runs the suite and prints a line a test.
pub(crate) fn run() -> Result<()> {
    crate::setup::for_windows_builds()?;
    let wine = Wine::ready("suite")?;
    let _server = wine.serve()?;
    let mut failed = 0;
    for krate in TESTED_ON_WINDOWS {
        for program in test_programs(krate)? {
            let status = wine.command(&program).status()?;
            failed += u32::from(!status.success());
        }
    }
    if failed > 0 {
        bail!("{failed} of the Windows programs failed");
    }
    Ok(())
}

/// Builds the tests of `krate` for Windows and says where they are.
fn test_programs(krate: &str) -> Result<Vec<PathBuf>> {
    let mut build: Command = cargo();
    build.args(["test", "--no-run", "--package", krate, "--target", workspace::WINDOWS_TARGET]);
    let output = build.output().with_context(|| format!("cannot run {}", line(&build)))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{} ended with {}:\n{text}", line(&build), output.status);
    }
    // cargo ends with a line a program: `Executable unittests src/lib.rs (target/…/uds-1f.exe)`.
    let programs = text.lines().filter(|line| line.trim_start().starts_with("Executable"));
    let paths = programs.filter_map(|line| line.rsplit_once('(')?.1.strip_suffix(')'));
    Ok(paths.map(|path| workspace::root().join(path)).collect())
}
