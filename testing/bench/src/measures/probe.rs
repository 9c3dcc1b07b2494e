//! `gpu-probe`: its size, and a run of all APIs with the software devices of this machine.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::group::{AppliesTo, Effort, Group, Row};

pub(super) fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let metadata = std::fs::metadata(program)
        .with_context(|| format!("cannot read the size of `{}`", program.display()))?;
    let kib = u32::try_from(metadata.len() / 1024)?;
    let size = Row::new("gpu-probe, stripped", "MiB", vec![f64::from(kib) / 1024.0])?;
    let mut times = Vec::new();
    let mut summary = String::new();
    for _ in 0..effort.times(20) {
        let start = Instant::now();
        // The exit status says which APIs work, and does not matter here.
        let output = Command::new(program).arg("--allow-software").output();
        let output = output.with_context(|| format!("cannot run `{}`", program.display()))?;
        times.push(start.elapsed().as_secs_f64());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = text.lines().last().context("gpu-probe printed nothing")?;
        last.clone_into(&mut summary);
    }
    let run = Row::new(format!("run of all APIs ({summary})"), "s", times)?;
    Ok(Group {
        title: "Test of a container",
        how: "The program `gpu-probe`, and a run without names of APIs on this machine, which has \
              no GPU: Mesa's software Vulkan and OpenGL, and pocl.",
        rows: vec![size.within(1.0, AppliesTo::Median), run.within(30.0, AppliesTo::Percentile99)],
    })
}
