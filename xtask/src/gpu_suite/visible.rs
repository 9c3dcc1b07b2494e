//! `directx-visible` with two GPUs, one of which Wine's Direct3D uses: it works if that one is
//! visible, and is refused if it is hidden. Wine's Vulkan does not use D3DKMT, so it always
//! lists both, and `--check` must report that.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::report::{probe, program, report, row};
use crate::wine::{Wine, windows_path};
use crate::{visibility_filter, workspace};

/// What Wine implements on top of D3DKMT.
const APIS: [&str; 4] = ["d3dkmt", "dxgi", "d3d11", "d3d12"];

pub(super) fn check(wine: &Wine) -> Result<()> {
    let start = Instant::now();
    let launcher = launcher()?;
    let (_, report) = probe(wine.command(&program()), &APIS[..2])?;
    let all = luids(row(&report, "d3dkmt")?);
    let used = luids(row(&report, "dxgi")?);
    let hidden: BTreeSet<i64> = all.difference(&used).copied().collect();
    ensure!(used.len() == 1 && hidden.len() == 1, "not two GPUs: {report:#}");
    let (used, other) = (used.into_iter().sum(), hidden.into_iter().sum());
    let container = |luids: &str| {
        let mut command = wine.command(&launcher);
        command.env("DIRECTX_VISIBLE_DEVICES", luids);
        command
    };
    works(container(&format!("{used}")), used)?;
    is_refused(container(&format!("{other}")), other)?;
    reports_a_difference(container(&format!("{other}")), other)?;
    reports_no_difference(container(&format!("{used},{other}")))?;
    println!("directx-visible with two GPUs: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// The launcher beside its filters.
fn launcher() -> Result<PathBuf> {
    let folder = workspace::target_dir().join("wine").join("two-gpus-visible");
    fs::create_dir_all(&folder)?;
    visibility_filter::build_into(&folder)?;
    let (program, copy) = ("directx-visible.exe", folder.join("directx-visible.exe"));
    fs::copy(workspace::windows_build(program), &copy).context("cannot copy the launcher")?;
    Ok(copy)
}

/// The devices in a row of a report.
fn luids(row: &Value) -> BTreeSet<i64> {
    let devices = row["devices"].as_array().into_iter().flatten();
    devices.filter_map(|device| device["luid"].as_i64()).collect()
}

/// `gpu-probe --expect`, as the program of `launcher`.
fn expecting(mut launcher: Command) -> Result<(bool, Value)> {
    launcher.args(["--require", "--", &windows_path(&program()), "--expect"]);
    let (status, report) = probe(launcher, &APIS)?;
    Ok((status.success(), report))
}

fn works(launcher: Command, visible: i64) -> Result<()> {
    let (success, report) = expecting(launcher)?;
    for api in APIS {
        let row = row(&report, api)?;
        let is_visible = luids(row) == BTreeSet::from([visible]);
        ensure!(row["verdict"] == "ok" && is_visible, "{api} with {visible}: {row:#}");
    }
    let visibility = &report["visibility"];
    ensure!(success && visibility["isAsAllocated"] == true, "{visibility:#}");
    Ok(())
}

/// Direct3D's only GPU is hidden.
fn is_refused(launcher: Command, visible: i64) -> Result<()> {
    let (success, report) = expecting(launcher)?;
    let kernel = row(&report, "d3dkmt")?;
    ensure!(luids(kernel) == BTreeSet::from([visible]), "with {visible}: {kernel:#}");
    for api in &APIS[1..] {
        let row = row(&report, api)?;
        let is_refused = row["verdict"] == "failed" && luids(row).is_empty();
        ensure!(is_refused, "{api} uses a hidden GPU: {row:#}");
    }
    ensure!(!success, "gpu-probe accepts that nothing works");
    Ok(())
}

fn reports_a_difference(mut launcher: Command, visible: i64) -> Result<()> {
    let (status, report) = report(launcher.args(["--check", "--json"]))?;
    ensure!(status.code() == Some(1) && report["isAsAllocated"] == false, "{report:#}");
    for row in report["apis"].as_array().into_iter().flatten() {
        let verdict = row["verdict"].as_str().unwrap_or_default();
        let expected: &[&str] = match row["api"].as_str().unwrap_or_default() {
            "vulkan" => &["different"],
            "dxcore" | "cuda" => &["absent"],
            "d3dkmt" => &["ok", "absent"],
            _ => &["ok"],
        };
        ensure!(expected.contains(&verdict), "{row:#}");
    }
    for call in ["D3DKMTEnumAdapters", "D3DKMTEnumAdapters2", "D3DKMTOpenAdapterFromLuid"] {
        let row = of_call(&report, call)?;
        ensure!(
            row["unfiltered"]["devices"]["luids"].as_array().map(Vec::len) == Some(2),
            "{row:#}"
        );
        ensure!(row["filtered"]["devices"]["luids"] == serde_json::json!([visible]), "{row:#}");
    }
    for call in ["IDXGIFactory1::EnumAdapters1", "D3D12CreateDevice without adapter"] {
        let row = of_call(&report, call)?;
        ensure!(row["filtered"]["failed"].is_string(), "{row:#}");
    }
    Ok(())
}

fn reports_no_difference(mut launcher: Command) -> Result<()> {
    let output = launcher.arg("--check").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = ["ok        vulkan  ", "absent    cuda    ", "ok        d3d12   "];
    let is_complete = lines.iter().all(|line| text.contains(line));
    ensure!(output.status.success() && is_complete && !text.contains("DIFFERENT"), "{text}");
    Ok(())
}

/// The row of a call.
fn of_call<'a>(report: &'a Value, call: &str) -> Result<&'a Value> {
    let mut rows = report["apis"].as_array().into_iter().flatten();
    rows.find(|row| row["call"] == call).with_context(|| format!("{call} is missing: {report:#}"))
}
