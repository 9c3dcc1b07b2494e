//! `cargo xtask attack`: attacks the release program and writes the table of `docs/attacks.md`.
//! The step `attack` of the tests runs a short form against the debug program.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::process::run;
use crate::workspace::{self, cargo, program};

/// Arguments go to the attacking program, which then only prints its table.
pub(crate) fn command(arguments: &[OsString]) -> Result<()> {
    // In one build, cargo would give the attacked program the dependency features that only the
    // attacking one needs.
    for package in ["plugin", "adversary"] {
        run(cargo().args(["build", "--quiet", "--release", "--package", package]))?;
    }
    let write = ["--write".into(), "docs/attacks.md".into()];
    attack("release", if arguments.is_empty() { &write } else { arguments })
}

/// The short form, against the debug program.
pub(crate) fn check() -> Result<()> {
    workspace::build()?;
    attack("debug", &["--short".into()])
}

fn attack(folder: &str, arguments: &[OsString]) -> Result<()> {
    let mut adversary = Command::new(program(folder, "adversary"));
    adversary.current_dir(workspace::root());
    run(adversary.arg(program(folder, "directx-device-plugin")).args(arguments))
}
