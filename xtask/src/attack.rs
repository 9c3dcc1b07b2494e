//! `cargo xtask attack`: attacks the release program and writes the table of `docs/security.md`.
//! The step `attack` of the tests runs a short form against the debug program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::process::run;
use crate::workspace::{cargo, program};

/// Arguments go to the attacking program, which then only prints its table.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let write = ["--write".into(), "docs/security.md".into()];
    let arguments = if arguments.is_empty() { &write } else { arguments };
    attack("release", program("release", "directx-device-plugin"), arguments)?;
    Ok(ExitCode::SUCCESS)
}

/// The short form, against the debug program.
pub(crate) fn check() -> Result<()> {
    attack("dev", program("debug", "directx-device-plugin"), &["--short".into()])
}

/// In one build, cargo would give the attacked program the dependency features that only the
/// attacking one needs.
fn attack(profile: &str, program: PathBuf, arguments: &[OsString]) -> Result<()> {
    let profile = ["--quiet", "--profile", profile];
    run(cargo().arg("build").args(profile).args(["--package", "plugin"]))?;
    let mut adversary = cargo();
    adversary.arg("run").args(profile).args(["--package", "adversary", "--"]);
    run(adversary.arg(program).args(arguments))
}
