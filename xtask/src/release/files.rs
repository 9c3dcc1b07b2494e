//! The names of the files of a release, and what they are made from.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::image::{self, PLUGIN};

/// The start of the names of the files, such as `directx-device-plugin-0.1.0`.
pub(super) fn prefix(version: &str) -> String {
    format!("{PLUGIN}-{version}")
}

/// The archive of the Windows programs.
pub(super) fn windows_archive(version: &str) -> String {
    format!("{}-windows-x86_64.zip", prefix(version))
}

/// The folder in the archive of the Linux programs, whose name has the end `.tar.gz`.
pub(super) fn linux_folder(version: &str) -> String {
    format!("{}-linux-x86_64", prefix(version))
}

/// The manifests in `deploy`, sorted.
pub(super) fn manifests(root: &Path) -> Result<Vec<PathBuf>> {
    files_with_extension(&root.join("deploy"), "yml")
}

pub(super) fn files_with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    Ok(paths)
}

/// Runs `cargo xtask image`.
pub(super) fn build_image(folder: &Path, arguments: &[OsString]) -> Result<()> {
    let mut words: Vec<OsString> = vec!["--output".into(), folder.into()];
    words.extend_from_slice(arguments);
    let code = image::command(&words)?;
    if code != ExitCode::SUCCESS {
        bail!("the image was not built");
    }
    Ok(())
}
