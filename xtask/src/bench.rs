//! `cargo xtask bench`: measures the release program, and writes the result into `docs`. With
//! arguments, it only prints it.

use std::ffi::OsString;

use anyhow::Result;

use crate::process::run;
use crate::workspace::cargo;

pub(crate) fn command(arguments: &[OsString]) -> Result<()> {
    let mut bench = cargo();
    bench.args(["run", "--quiet", "--release", "--package", "bench", "--"]).args(arguments);
    if arguments.is_empty() {
        bench.args(["--write", "docs/maintainers/benchmarks.md"]);
    }
    run(&mut bench)
}
