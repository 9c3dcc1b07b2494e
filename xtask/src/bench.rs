//! `cargo xtask bench`: measures the release program and writes `docs/benchmarks.md`.
//!
//! The group `visible` measures Windows programs under Wine, in a prefix that looks like a
//! host with two GPUs. The group `fleet` measures the API server of a cluster on this machine.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::process::run;
use crate::workspace::{self, cargo};
use crate::{build_flags, kubernetes_suites, prerequisites, visibility_filter, windows_suites};

/// The group that needs Windows programs.
const VISIBLE: &str = "visible";

/// The group that needs a cluster.
const FLEET: &str = "fleet";

/// A host with two GPUs, and the LUID of the one that the measured programs see.
const INVENTORY: &str = "fixtures/inventories/aws-t4-two.yaml";
const LUID: &str = "7098126";

/// Arguments go to the measuring program, which then only prints its results.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    for (package, program) in programs(arguments) {
        build(package, program)?;
    }
    let mut bench = Command::new(workspace::release_program("bench"));
    bench.arg(workspace::release_program("directx-device-plugin")).args(arguments);
    if arguments.is_empty() {
        bench.arg("--write").arg(workspace::root().join("docs").join("benchmarks.md"));
    }
    let folder = tempfile::tempdir()?;
    if measures(arguments, FLEET) {
        let figures = folder.path().join("fleet.json");
        measure_fleet(arguments.iter().any(|word| word == "--quick"), &figures)?;
        bench.arg("--fleet").arg(&figures);
    }
    if measures(arguments, VISIBLE) {
        run_with_windows(&mut bench)?;
    } else {
        run(&mut bench)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Separate builds: in one build, cargo would give a program the dependency features that only
/// another one needs.
fn build(package: &str, program: &str) -> Result<()> {
    let arguments = ["build", "--quiet", "--release", "--package", package, "--bin", program];
    run(cargo().args(arguments))
}

/// The packages to build for this machine, and their programs.
fn programs(arguments: &[OsString]) -> Vec<(&'static str, &'static str)> {
    let bench = ("bench", "bench");
    if only(arguments).is_some_and(|group| group == VISIBLE) {
        return vec![bench];
    }
    vec![("plugin", "directx-device-plugin"), ("gpu_probe", "gpu-probe"), bench]
}

/// Whether the group is measured: without `--only`, all groups are.
fn measures(arguments: &[OsString], group: &str) -> bool {
    only(arguments).is_none_or(|only| only == group)
}

/// The word after `--only`.
fn only(arguments: &[OsString]) -> Option<&OsStr> {
    let at = arguments.iter().position(|word| word == "--only")?;
    Some(arguments.get(at + 1).map_or(OsStr::new(""), OsString::as_os_str))
}

/// Runs the programs of many nodes in a cluster, and writes the figures to a file.
fn measure_fleet(quick: bool, figures: &Path) -> Result<()> {
    prerequisites::require_go("the Kubernetes cluster", "1.26")?;
    build("feature_discovery", "directx-feature-discovery")?;
    build("fleet", "fleet")?;
    let (nodes, seconds) = if quick { ("50", "2") } else { ("1000", "60") };
    let mut test = kubernetes_suites::test();
    for (variable, program) in [
        ("DIRECTX_DEVICE_PLUGIN", "directx-device-plugin"),
        ("DIRECTX_FEATURE_DISCOVERY", "directx-feature-discovery"),
        ("FLEET", "fleet"),
    ] {
        test.env(variable, workspace::release_program(program));
    }
    test.env("FLEET_NODES", nodes).env("FLEET_SECONDS", seconds).env("FLEET_FIGURES", figures);
    run(test.args(["-v", "-run=^TestFleetSendsFewRequests$", "./cluster"]))
}

/// Runs `bench` with the programs of its group `visible`.
fn run_with_windows(bench: &mut Command) -> Result<()> {
    let folder = windows_programs()?;
    bench.arg("--windows").arg(&folder).arg("--").env("DIRECTX_VISIBLE_DEVICES", LUID);
    let double = ["build", "--quiet", "--package", "dxcore_double", "--package", "wine_bed"];
    run(cargo().args(double).args(["--target", workspace::WINDOWS_TARGET]))?;
    copy(&workspace::windows_build("wine_bed.exe"), &folder)?;
    let wine = || {
        let mut wine = Command::new(windows_suites::script());
        wine.args(["--prefix", "bench"]);
        wine
    };
    run(wine().arg("--stop"))?;
    let inventory = workspace::root().join(INVENTORY);
    run(wine().arg("--inventory").arg(inventory).args(["cmd.exe", "/c", "exit"]))?;
    bench.arg(windows_suites::script()).args(["--prefix", "bench"]);
    run(bench)?;
    run(wine().arg("--stop"))
}

/// Builds the launcher and its filters, and returns a folder with nothing else.
fn windows_programs() -> Result<PathBuf> {
    prerequisites::for_windows_builds()?;
    let mut launcher = cargo();
    launcher.args(["build", "--quiet", "--release", "--locked", "--package", "directx_visible"]);
    // As it is shipped.
    launcher.args(["--target", workspace::WINDOWS_TARGET]).env_remove("RUSTFLAGS");
    run(launcher.env("CARGO_ENCODED_RUSTFLAGS", build_flags::windows().join("\u{1f}")))?;
    let folder = workspace::target_dir().join("bench-visible");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let built = workspace::target_dir().join(workspace::WINDOWS_TARGET).join("release");
    copy(&built.join("directx-visible.exe"), &folder)?;
    visibility_filter::build_into(&folder)?;
    Ok(folder)
}

fn copy(file: &Path, folder: &Path) -> Result<()> {
    let target = folder.join(file.file_name().unwrap_or_default());
    fs::copy(file, target).with_context(|| format!("cannot copy {}", file.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_needs_only_its_own_programs() {
        for (words, native, windows, fleet) in [
            (&[][..], 3, true, true),
            (&["--quick"], 3, true, true),
            (&["--quick", "--only", "visible"], 1, true, false),
            (&["--only", "fleet"], 3, false, true),
            (&["--only", "calls"], 3, false, false),
            (&["--only"], 3, false, false),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let found = (measures(&words, VISIBLE), measures(&words, FLEET));
            assert_eq!(programs(&words).len(), native, "{words:?}");
            assert_eq!(found, (windows, fleet), "{words:?}");
        }
    }
}
