//! `cargo xtask attack`: attacks the release program and writes the table of `docs/security.md`.
//! The step `attack` of the tests runs a short form against the debug program.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::process::run;
use crate::workspace::{self, cargo};

/// The attacked program and the attacking one. They are built separately: in one build, cargo would
/// give the attacked program the dependency features that only the attacking program needs.
const PROGRAMS: [(&str, &str); 2] =
    [("plugin", "directx-device-plugin"), ("adversary", "adversary")];

/// Arguments go to the attacking program, which then only prints its table.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    for (package, program) in PROGRAMS {
        let build = ["build", "--quiet", "--release", "--package", package, "--bin", program];
        run(cargo().args(build))?;
    }
    let mut adversary = Command::new(workspace::release_program("adversary"));
    adversary.arg(workspace::release_program("directx-device-plugin")).args(arguments);
    if arguments.is_empty() {
        adversary.arg("--write").arg(workspace::root().join("docs").join("security.md"));
    }
    run(&mut adversary)?;
    Ok(ExitCode::SUCCESS)
}

/// The short form, against the debug program.
pub(crate) fn check() -> Result<()> {
    for (package, program) in PROGRAMS {
        run(cargo().args(["build", "--quiet", "--package", package, "--bin", program]))?;
    }
    let mut adversary = Command::new(workspace::native_program("adversary"));
    adversary.arg(workspace::native_program("directx-device-plugin")).arg("--short");
    run(&mut adversary)
}
