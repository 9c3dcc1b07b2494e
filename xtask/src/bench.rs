//! `cargo xtask bench`: measures the release program and writes `docs/benchmarks.md`.
//!
//! The group `visible` measures Windows programs under Wine, in a prefix that looks like a
//! host with two GPUs.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::process::run;
use crate::wine::{SimulatedHost, Wine};
use crate::workspace::{self, cargo};
use crate::{build_flags, prerequisites, visibility_filter};

/// The group that needs Windows programs.
const VISIBLE: &str = "visible";

/// A host with two GPUs, and the LUID of the one that the measured programs see.
const INVENTORY: &str = "fixtures/inventories/aws-t4-two.yaml";
const LUID: &str = "7098126";

/// Arguments go to the measuring program, which then only prints its results.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    // Separate builds: in one build, cargo would give the program the dependency features
    // that only the measuring program needs.
    for (package, program) in programs(arguments) {
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
    if measures_visible(arguments) {
        run_with_windows(&mut bench)?;
    } else {
        run(&mut bench)?;
    }
    Ok(ExitCode::SUCCESS)
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
fn measures_visible(arguments: &[OsString]) -> bool {
    only(arguments).is_none_or(|group| group == VISIBLE)
}

/// The word after `--only`.
fn only(arguments: &[OsString]) -> Option<&OsStr> {
    let at = arguments.iter().position(|word| word == "--only")?;
    Some(arguments.get(at + 1).map_or(OsStr::new(""), OsString::as_os_str))
}

/// Runs `bench` with the programs of its group `visible`.
fn run_with_windows(bench: &mut Command) -> Result<()> {
    let folder = windows_programs()?;
    bench.arg("--windows").arg(&folder).arg("--").env("DIRECTX_VISIBLE_DEVICES", LUID);
    let wine = Wine::ready("bench")?;
    let _lock = wine.lock()?;
    let host = SimulatedHost::new(&wine)?;
    copy(&workspace::windows_build("wine_bed.exe"), &folder)?;
    let _server = wine.start_server()?;
    host.set(&workspace::root().join(INVENTORY))?;
    let runner = wine.runner();
    bench.arg(runner.get_program()).args(runner.get_args());
    for (name, value) in runner.get_envs() {
        match value {
            Some(value) => bench.env(name, value),
            None => bench.env_remove(name),
        };
    }
    run(bench)
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
        for (words, native, windows) in [
            (&[][..], 3, true),
            (&["--quick"], 3, true),
            (&["--quick", "--only", "visible"], 1, true),
            (&["--only", "calls"], 3, false),
            (&["--only"], 3, false),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let found = (programs(&words).len(), measures_visible(&words));
            assert_eq!(found, (native, windows), "{words:?}");
        }
    }
}
