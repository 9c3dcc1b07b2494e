//! The Windows programs that images contain.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::layer::Files;
use crate::process::run;
use crate::visibility_filter::{self, FILTERS};
use crate::workspace::{self, cargo};
use crate::{build_flags, prerequisites};

/// The packages that contain the programs.
pub(crate) const PACKAGES: [&str; 4] =
    ["multicall", "discovery_dll", "gpu_probe", "directx_visible"];

/// One program that acts as each of the others, depending on its name.
const ALL: &str = "directx-programs.exe";

/// The files in the plugin's image, except the visibility filters, and the built files that
/// they are. `gpu-probe` is copied into the images of users and `directx-visible` is mounted
/// into containers, so they are files of their own.
const SHIPPED: [(&str, &str); 12] = [
    ("directx-device-plugin.exe", ALL),
    ("device-plugin-wddm.exe", ALL),
    ("device-plugin-mcdm.exe", ALL),
    ("directx-feature-discovery.exe", ALL),
    ("gen-device-mounts.exe", ALL),
    ("gpu-probe.exe", "gpu-probe.exe"),
    ("directx-visible.exe", "directx-visible.exe"),
    ("query-hcs-capabilities.exe", ALL),
    ("test-device-discovery.exe", ALL),
    ("test-device-discovery-cpp.exe", ALL),
    ("test-device-discovery-go.exe", ALL),
    ("directx-device-discovery.dll", "directx_device_discovery.dll"),
];

/// The names of all files in the plugin's image.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name).chain(FILTERS.iter().map(|filter| filter.file))
}

/// Builds the programs with a profile and returns their folder.
pub(super) fn build(profile: &str) -> Result<PathBuf> {
    prerequisites::for_windows_builds()?;
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--profile", profile]);
    build.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    build.args(["--target", workspace::WINDOWS_TARGET]).env_remove("RUSTFLAGS");
    build.env("CARGO_ENCODED_RUSTFLAGS", build_flags::windows().join("\u{1f}"));
    run(&mut build)?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let folder = workspace::target_dir().join(workspace::WINDOWS_TARGET).join(folder);
    visibility_filter::build_into(&folder)?;
    Ok(folder)
}

/// Reads the files `names` from `folder`, by their names in the image.
pub(super) fn read(folder: &Path, names: &[&str]) -> Result<Files> {
    names
        .iter()
        .map(|name| {
            let shipped = SHIPPED.iter().find(|(shipped, _)| shipped == name);
            let path = folder.join(shipped.map_or(name, |(_, built)| built));
            let bytes = fs::read(&path).with_context(|| {
                let path = path.display();
                format!("cannot read {path}\nhint: --programs names a folder with a Windows build")
            })?;
            Ok(((*name).to_owned(), bytes))
        })
        .collect()
}
