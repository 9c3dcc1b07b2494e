//! The sizes of the programs.
//!
//! Those of the stripped files that `cargo build --release` creates.

use std::path::Path;

use anyhow::{Context, Result};

use crate::group::{AppliesTo, Group, Row};

pub(super) fn measure(plugin: &Path, probe: &Path) -> Result<Group> {
    Ok(Group {
        title: "Size",
        rows: vec![
            Row::new("directx-device-plugin", "MiB", vec![mebibytes(plugin)?])?
                .within(10.0, AppliesTo::Median),
            Row::new("gpu-probe", "MiB", vec![mebibytes(probe)?])?.within(1.0, AppliesTo::Median),
        ],
    })
}

fn mebibytes(program: &Path) -> Result<f64> {
    let metadata = std::fs::metadata(program)
        .with_context(|| format!("cannot read the size of `{}`", program.display()))?;
    Ok(f64::from(u32::try_from(metadata.len() / 1024)?) / 1024.0)
}
