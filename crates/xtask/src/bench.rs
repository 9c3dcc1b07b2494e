//! `cargo xtask bench`: measures the release program and writes `docs/benchmarks.md`.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::process::run;
use crate::workspace::{self, cargo};

/// With `--quick` a few figures of each are shown and nothing is written.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let quick = match arguments {
        [] => false,
        [word] if word == "--quick" => true,
        _ => bail!("`bench` takes `--quick` alone"),
    };
    // One by one: built together, the program would get the features that the other needs.
    for (package, program) in [("plugin", "directx-device-plugin"), ("bench", "bench")] {
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
    let mut bench = Command::new(workspace::release_build("bench"));
    bench.arg(workspace::release_build("directx-device-plugin"));
    if quick {
        bench.arg("--quick");
    } else {
        bench.arg("--write").arg(workspace::root().join("docs").join("benchmarks.md"));
    }
    run(&mut bench)?;
    Ok(ExitCode::SUCCESS)
}
