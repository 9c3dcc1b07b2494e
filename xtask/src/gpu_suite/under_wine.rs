//! The Windows program under Wine, whose Direct3D, Vulkan, OpenGL and `OpenCL` use software GPUs.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::prerequisites;
use crate::process::{output_within, run};
use crate::wine::Wine;
use crate::workspace::{self, cargo};

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

/// Seconds for one API, which takes less than one on an idle machine.
const TIME_LIMIT: &str = "120";

/// How long one run may take.
const DEADLINE: Duration = Duration::from_secs(600);

pub(super) fn check() -> Result<()> {
    prerequisites::for_windows_builds()?;
    let build = ["build", "--quiet", "--package", "gpu_probe", "--target"];
    run(cargo().args(build).arg(workspace::WINDOWS_TARGET))?;
    let wine = Wine::with_graphics("two-gpus")?;
    let _lock = wine.lock()?;
    let _server = wine.start_server()?;
    let probe = |arguments: &[&str]| {
        let mut command = wine.command(&workspace::windows_build("gpu-probe.exe"));
        command.args(["--allow-software", "--output", "json", "--time-limit", TIME_LIMIT]);
        command.args(arguments);
        report(&mut command)
    };
    let start = Instant::now();
    let report = probe(&COMPUTES)?;
    for api in COMPUTES {
        let row = row(&report, api)?;
        ensure!(row["verdict"] == "ok", "{api} does not compute: {row:#}");
    }
    let report = probe(&ABSENT.map(|(api, _)| api))?;
    for (api, library) in ABSENT {
        let row = row(&report, api)?;
        let is_absent = row["verdict"] == "absent" && row["fault"].to_string().contains(library);
        ensure!(is_absent, "{api} is not reported as absent: {row:#}");
    }
    println!("gpu-probe under Wine: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// What the program prints.
fn report(command: &mut Command) -> Result<Value> {
    let output = output_within(DEADLINE, command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .with_context(|| format!("no report: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// What a report says of an API.
fn row<'a>(report: &'a Value, api: &str) -> Result<&'a Value> {
    let mut rows = report["apis"].as_array().into_iter().flatten();
    rows.find(|row| row["api"] == api).with_context(|| format!("{api} is missing: {report:#}"))
}
