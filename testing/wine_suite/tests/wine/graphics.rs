//! The Windows programs with two software GPUs, which Wine's Direct3D, Vulkan, OpenGL and `OpenCL`
//! use. Direct3D uses one of them: `directx-visible` works if that one is visible, and is refused
//! if it is hidden. Wine's Vulkan does not use D3DKMT, so it always lists both, and `--check` must
//! report that.

use std::collections::BTreeSet;
use std::process::{Command, ExitStatus};

use serde_json::{Value, json};

use super::host::{Prefix, Slot};
use super::output::{output, text};
use super::paths::{copy, copy_filters, windows_build, windows_path};

/// What Wine has.
const COMPUTES: [&str; 5] = ["d3d11", "d3d12", "vulkan", "opencl", "opengl"];

/// What Wine does not have, with a part of the reason.
const ABSENT: [(&str, &str); 6] = [
    ("cuda", "nvcuda.dll"),
    ("nvml", "nvml.dll"),
    ("directml", "DirectML.dll"),
    ("nvenc", "nvEncodeAPI64.dll"),
    ("amf", "amfrt64.dll"),
    ("qsv", "libmfxhw64.dll"),
];

/// What Wine implements on top of D3DKMT.
const APIS: [&str; 4] = ["d3dkmt", "dxgi", "d3d11", "d3d12"];

/// The prefix with two GPUs.
pub(crate) fn two_gpus() -> Prefix {
    static SLOT: [Slot; 1] = [Slot::new("two-gpus", &["--graphics"])];
    Prefix::take(&SLOT)
}

#[test]
#[ignore = "needs Wine: cargo xtask test gpu"]
fn gpu_probe_computes_with_every_api_of_wine() {
    let wine = two_gpus();
    let (_, report) = probe(wine.command(program()), &COMPUTES);
    for api in COMPUTES {
        let row = row(&report, "api", api);
        assert_eq!(row["verdict"], "ok", "{row:#}");
    }
    let (_, report) = probe(wine.command(program()), &ABSENT.map(|(api, _)| api));
    for (api, library) in ABSENT {
        let row = row(&report, "api", api);
        assert_eq!(row["verdict"], "absent", "{row:#}");
        assert!(row["fault"].to_string().contains(library), "{row:#}");
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test gpu"]
fn direct3d_works_with_a_visible_gpu_and_is_refused_a_hidden_one() {
    let wine = two_gpus();
    let folder = wine.empty_folder("two-gpus-visible");
    let launcher = copy(&windows_build("directx-visible.exe"), &folder);
    copy_filters(&folder);
    let (used, other) = the_gpu_of_direct3d_and_the_other(&wine);
    let container = |luids: &str| {
        let mut command = wine.command(&launcher);
        command.env("DIRECTX_VISIBLE_DEVICES", luids);
        command
    };
    works(container(&format!("{used}")), used);
    is_refused(container(&format!("{other}")), other);
    reports_a_difference(container(&format!("{other}")), other);
    reports_no_difference(container(&format!("{used},{other}")));
}

/// The LUIDs of the two GPUs.
pub(crate) fn the_gpu_of_direct3d_and_the_other(wine: &Prefix) -> (i64, i64) {
    let (_, report) = probe(wine.command(program()), &APIS[..2]);
    let all = luids(row(&report, "api", "d3dkmt"));
    let used = luids(row(&report, "api", "dxgi"));
    let hidden: Vec<i64> = all.difference(&used).copied().collect();
    let used: Vec<i64> = used.into_iter().collect();
    let (&[used], &[other]) = (&used[..], &hidden[..]) else {
        panic!("not two GPUs: {report:#}");
    };
    (used, other)
}

fn works(launcher: Command, visible: i64) {
    let (status, report) = expecting(launcher);
    for api in APIS {
        let row = row(&report, "api", api);
        assert_eq!(row["verdict"], "ok", "{row:#}");
        assert_eq!(luids(row), BTreeSet::from([visible]), "{row:#}");
    }
    assert!(status.success() && report["visibility"]["isAsAllocated"] == true, "{report:#}");
}

/// Direct3D's only GPU is hidden.
fn is_refused(launcher: Command, visible: i64) {
    let (status, report) = expecting(launcher);
    assert_eq!(luids(row(&report, "api", "d3dkmt")), BTreeSet::from([visible]), "{report:#}");
    for api in &APIS[1..] {
        let row = row(&report, "api", api);
        assert!(row["verdict"] == "failed" && luids(row).is_empty(), "{row:#}");
    }
    assert!(!status.success(), "gpu-probe accepts that nothing works");
}

fn reports_a_difference(mut launcher: Command, visible: i64) {
    let (status, report) = json_report(launcher.args(["--check", "--output", "json"]));
    assert!(status.code() == Some(1) && report["isAsAllocated"] == false, "{report:#}");
    for row in report["apis"].as_array().expect("there are rows") {
        let expected: &[&str] = match row["api"].as_str().unwrap_or_default() {
            "vulkan" => &["different"],
            "dxcore" | "cuda" => &["absent"],
            "d3dkmt" => &["ok", "absent"],
            // Wine has no PowerShell.
            "child" => &["ok", "absent", "failed"],
            _ => &["ok"],
        };
        assert!(expected.contains(&row["verdict"].as_str().unwrap_or_default()), "{row:#}");
    }
    for call in ["D3DKMTEnumAdapters", "D3DKMTEnumAdapters2", "D3DKMTOpenAdapterFromLuid"] {
        let row = row(&report, "call", call);
        let unfiltered = row["unfiltered"]["devices"]["luids"].as_array().map(Vec::len);
        assert_eq!(unfiltered, Some(2), "{row:#}");
        assert_eq!(row["filtered"]["devices"]["luids"], json!([visible]), "{row:#}");
    }
    for call in ["IDXGIFactory1::EnumAdapters1", "D3D12CreateDevice without adapter"] {
        let row = row(&report, "call", call);
        assert!(row["filtered"]["failed"].is_string(), "{row:#}");
    }
}

fn reports_no_difference(mut launcher: Command) {
    let output = output(launcher.arg("--check"));
    let text = text(&output.stdout);
    let lines = ["ok        vulkan  ", "absent    cuda    ", "ok        d3d12   "];
    let is_complete = lines.iter().all(|line| text.contains(line));
    assert!(output.status.success() && is_complete && !text.contains("DIFFERENT"), "{text}");
}

fn program() -> std::path::PathBuf {
    windows_build("gpu-probe.exe")
}

/// Runs `gpu-probe` with `arguments`: its exit status and its report.
fn probe(mut command: Command, arguments: &[&str]) -> (ExitStatus, Value) {
    // One API takes less than a second on an idle machine.
    command.args(["--allow-software", "--output", "json", "--time-limit", "120"]);
    json_report(command.args(arguments))
}

/// `gpu-probe --expect`, as the program of `launcher`.
fn expecting(mut launcher: Command) -> (ExitStatus, Value) {
    launcher.args(["--require", "--", &windows_path(&program()), "--expect"]);
    probe(launcher, &APIS)
}

fn json_report(command: &mut Command) -> (ExitStatus, Value) {
    let output = output(command);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr));
    });
    (output.status, report)
}

/// The row of a report whose `key` has this value.
fn row<'a>(report: &'a Value, key: &str, value: &str) -> &'a Value {
    let mut rows = report["apis"].as_array().into_iter().flatten();
    rows.find(|row| row[key] == value).unwrap_or_else(|| panic!("no {value}: {report:#}"))
}

/// The devices in a row of a report.
fn luids(row: &Value) -> BTreeSet<i64> {
    let devices = row["devices"].as_array().into_iter().flatten();
    devices.filter_map(|device| device["luid"].as_i64()).collect()
}
