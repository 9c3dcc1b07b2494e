//! `cargo xtask bench`: measures release programs and writes `docs/benchmarks.md`.

use std::ffi::OsString;

use anyhow::Result;

use crate::process::run;
use crate::workspace::cargo;

/// Arguments go to the measuring program, which then only prints its results.
pub(crate) fn command(arguments: &[OsString]) -> Result<()> {
    let mut bench = cargo();
    bench.args(["run", "--quiet", "--release", "--package", "bench", "--"]).args(arguments);
    if arguments.is_empty() {
        bench.args(["--write", "docs/benchmarks.md"]);
    }
    run(&mut bench)
}
