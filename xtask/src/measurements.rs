//! `cargo xtask bench` and `cargo xtask attack`: measure and attack the release programs, and write
//! the results into `docs`. With arguments, they only print them.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::process::run;
use crate::workspace::{self, cargo};

pub(crate) fn bench(arguments: &[OsString]) -> Result<()> {
    let mut bench = cargo();
    bench.args(["run", "--quiet", "--release", "--package", "bench", "--"]).args(arguments);
    if arguments.is_empty() {
        bench.args(["--write", "docs/maintainers/benchmarks.md"]);
    }
    run(&mut bench)
}

pub(crate) fn attack(arguments: &[OsString]) -> Result<()> {
    // In one build, cargo would give the attacked program the dependency features that only the
    // attacking one needs.
    for package in ["plugin", "adversary"] {
        run(cargo().args(["build", "--quiet", "--release", "--package", package]))?;
    }
    let write = ["--write".into(), "docs/attacks.md".into()];
    run_adversary("release", if arguments.is_empty() { &write } else { arguments })
}

/// The step `attack`: the short form, against the debug program.
pub(crate) fn short_attack() -> Result<()> {
    workspace::build()?;
    run_adversary("debug", &["--short".into()])
}

fn run_adversary(folder: &str, arguments: &[OsString]) -> Result<()> {
    let programs = workspace::target_dir().join(folder);
    let mut adversary = Command::new(programs.join("adversary"));
    adversary.current_dir(workspace::root());
    run(adversary.arg(programs.join("directx-device-plugin")).args(arguments))
}
