//! How large the program is.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Group, HoldsFor, Row};

pub(super) fn measure(program: &Path) -> Result<Group> {
    let metadata = std::fs::metadata(program)
        .with_context(|| format!("cannot look at the program `{}`", program.display()))?;
    let kib = u32::try_from(metadata.len() / 1024)?;
    let row = Row::new("release program, stripped", "MiB", vec![f64::from(kib) / 1024.0])?;
    Ok(Group {
        title: "Size",
        how: "The file that `cargo build --release` makes.",
        rows: vec![row.within(4.0, HoldsFor::Median)],
    })
}
