//! The Windows program under Wine, whose Direct3D, Vulkan, OpenGL and `OpenCL` use software GPUs.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::report::{probe, program, row};
use crate::wine::Wine;

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

pub(super) fn check(wine: &Wine) -> Result<()> {
    let start = Instant::now();
    let (_, report) = probe(wine.command(&program()), &COMPUTES)?;
    for api in COMPUTES {
        let row = row(&report, api)?;
        ensure!(row["verdict"] == "ok", "{api} does not compute: {row:#}");
    }
    let (_, report) = probe(wine.command(&program()), &ABSENT.map(|(api, _)| api))?;
    for (api, library) in ABSENT {
        let row = row(&report, api)?;
        let is_absent = row["verdict"] == "absent" && row["fault"].to_string().contains(library);
        ensure!(is_absent, "{api} is not reported as absent: {row:#}");
    }
    println!("gpu-probe under Wine: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
