//! Builds what is measured.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::group::Effort;

/// Builds a release program. One after another: in one build, cargo would give a program the
/// dependency features that only another one needs.
pub(crate) fn release(package: &str, program: &str) -> Result<PathBuf> {
    run(cargo().args(["build", "--quiet", "--release", "--package", package, "--bin", program]))?;
    Ok(target().join("release").join(format!("{program}{EXE_SUFFIX}")))
}

/// Runs the programs of many nodes in a cluster, and returns the file with the figures.
pub(crate) fn fleet_figures(effort: Effort) -> Result<PathBuf> {
    let figures = target().join("fleet.json");
    let (nodes, seconds) = match effort {
        Effort::Quick => ("50", "2"),
        Effort::Full => ("1000", "60"),
    };
    let mut go = Command::new("go");
    go.current_dir(root().join("testing/kubernetes"));
    go.args(["test", "-count=1", "-vet=off", "-timeout=30m", "-v"]);
    go.args(["-run=^TestFleetSendsFewRequests$", "./cluster"]);
    go.env("DIRECTX_DEVICE_PLUGIN", release("plugin", "directx-device-plugin")?);
    let discovery = release("feature_discovery", "directx-feature-discovery")?;
    go.env("DIRECTX_FEATURE_DISCOVERY", discovery).env("FLEET", release("fleet", "fleet")?);
    go.env("FLEET_NODES", nodes).env("FLEET_SECONDS", seconds).env("FLEET_FIGURES", &figures);
    run(&mut go)?;
    Ok(figures)
}

fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target")))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed with {status}");
    Ok(())
}
