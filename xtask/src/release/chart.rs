//! The package of the Helm chart.

use std::fs::{self, FileTimes};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use super::programs::{copy_folder, read};
use crate::image::PLUGIN;
use crate::process::run_logged;
use crate::{kubernetes_suites, prerequisites};

/// The name that helm gives to the package.
pub(super) fn file_name(version: &str) -> String {
    format!("{PLUGIN}-{version}.tgz")
}

/// Packages the chart of the workspace `root`. `date` is in seconds since 1970 UTC.
pub(super) fn package(root: &Path, date: u64) -> Result<Vec<u8>> {
    prerequisites::require_go("helm", "1.26")?;
    let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
    let chart = temporary.path().join(PLUGIN);
    copy_folder(&root.join("deploy/charts").join(PLUGIN), &chart)?;
    // helm packs the times of the files.
    set_times(&chart, SystemTime::UNIX_EPOCH + Duration::from_secs(date))?;
    let mut helm = Command::new(kubernetes_suites::helm()?);
    helm.current_dir(temporary.path()).args(["package", PLUGIN]);
    run_logged(&mut helm, &temporary.path().join("helm.log"))?;
    read(&temporary.path().join(file_name(env!("CARGO_PKG_VERSION"))))
}

fn set_times(path: &Path, time: SystemTime) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            set_times(&entry?.path(), time)?;
        }
    }
    let file = fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    file.set_times(FileTimes::new().set_modified(time))
        .with_context(|| format!("cannot change the time of {}", path.display()))
}
