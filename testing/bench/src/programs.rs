//! Builds what is measured.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::group::Effort;

const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// A host with two GPUs.
const INVENTORY: &str = "fixtures/inventories/aws-t4-two.yaml";

/// Windows programs, and what runs them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WindowsPrograms {
    /// The folder with the launcher, its filters and `wine_bed`.
    pub(crate) folder: PathBuf,
    /// A command to which the program and its arguments are added.
    pub(crate) runner: Vec<String>,
}

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

/// Builds the launcher and its filters into a folder with nothing else, and makes a prefix of Wine
/// look like a host with two GPUs.
pub(crate) fn windows() -> Result<WindowsPrograms> {
    let folder = target().join("bench-visible");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let copy = |file: &Path| {
        let to = folder.join(file.file_name().unwrap_or_default());
        fs::copy(file, to).with_context(|| format!("cannot copy {}", file.display()))
    };
    let build = ["build", "--quiet", "--target", WINDOWS, "--package"];
    run(cargo().args(build).args(["directx_visible", "--release"]))?;
    copy(&target().join(WINDOWS).join("release/directx-visible.exe"))?;
    run(cargo().args(build).args(["wine_bed", "--package", "dxcore_double"]))?;
    copy(&target().join(WINDOWS).join("debug/wine_bed.exe"))?;
    let filters = cargo().args(["xtask", "visibility-filter"]).output()?;
    ensure!(filters.status.success(), "{}", String::from_utf8_lossy(&filters.stderr));
    for file in String::from_utf8_lossy(&filters.stdout).lines() {
        copy(Path::new(file))?;
    }
    stop_wine()?;
    run(wine().arg("--inventory").arg(root().join(INVENTORY)).args(["cmd.exe", "/c", "exit"]))?;
    let wine = wine();
    let words = [wine.get_program()].into_iter().chain(wine.get_args());
    let runner = words.map(|word| word.to_string_lossy().into_owned()).collect();
    Ok(WindowsPrograms { folder, runner })
}

/// Stops the programs that [`windows`] has started.
pub(crate) fn stop_wine() -> Result<()> {
    run(wine().arg("--stop"))
}

fn wine() -> Command {
    let mut wine = Command::new(root().join("testing/wine/wine"));
    wine.args(["--prefix", "bench"]);
    wine
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
