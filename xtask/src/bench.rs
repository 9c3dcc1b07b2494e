//! `cargo xtask bench`: measures the release program and writes `docs/benchmarks.md`.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::process::run;
use crate::workspace::{self, cargo};

/// Arguments go to the measuring program, which then only prints its results.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    // Separate builds: in one build, cargo would give the program the dependency features
    // that only the measuring program needs.
    for (package, program) in
        [("plugin", "directx-device-plugin"), ("gpu_probe", "gpu-probe"), ("bench", "bench")]
    {
        run(cargo().args([
            "build",
            "--quiet",
            "--release",
            "--package",
            package,
            "--bin",
            program,
        ]))?;
    }
    let mut bench = Command::new(workspace::release_program("bench"));
    bench.arg(workspace::release_program("directx-device-plugin")).args(arguments);
    if arguments.is_empty() {
        bench.arg("--write").arg(workspace::root().join("docs").join("benchmarks.md"));
    }
    run(&mut bench)?;
    Ok(ExitCode::SUCCESS)
}
