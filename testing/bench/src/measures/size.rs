//! The size of the program.

use std::path::Path;

use anyhow::{Context, Result};

use crate::group::{AppliesTo, Group, Row};

pub(super) fn measure(program: &Path) -> Result<Group> {
    let metadata = std::fs::metadata(program)
        .with_context(|| format!("cannot read the size of the program `{}`", program.display()))?;
    let kib = u32::try_from(metadata.len() / 1024)?;
    let row = Row::new("release program, stripped", "MiB", vec![f64::from(kib) / 1024.0])?;
    Ok(Group {
        title: "Size",
        how: "The file that `cargo build --release` creates.",
        rows: vec![row.within(10.0, AppliesTo::Median)],
    })
}
