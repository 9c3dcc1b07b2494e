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
pub(crate) const PACKAGES: [&str; 6] =
    ["plugin", "feature_discovery", "tools", "discovery_dll", "gpu_probe", "directx_visible"];

/// The files in the plugin's image, except the visibility filters.
const SHIPPED: [&str; 12] = [
    "directx-device-plugin.exe",
    "device-plugin-wddm.exe",
    "device-plugin-mcdm.exe",
    "directx-feature-discovery.exe",
    "gen-device-mounts.exe",
    "gpu-probe.exe",
    "directx-visible.exe",
    "query-hcs-capabilities.exe",
    "test-device-discovery.exe",
    "test-device-discovery-cpp.exe",
    "test-device-discovery-go.exe",
    "directx-device-discovery.dll",
];

/// The names of all files in the plugin's image.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.into_iter().chain(FILTERS.iter().map(|filter| filter.file))
}

/// The file of the build that becomes the file `name`. The clients in C++ and in Go print the same
/// as `test-device-discovery`.
pub(crate) fn built(name: &str) -> &str {
    match name {
        "test-device-discovery-cpp.exe" | "test-device-discovery-go.exe" => {
            "test-device-discovery.exe"
        }
        "directx-device-discovery.dll" => "directx_device_discovery.dll",
        name => name,
    }
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
            let path = folder.join(built(name));
            let bytes = fs::read(&path).with_context(|| {
                let path = path.display();
                format!("cannot read {path}\nhint: --programs names a folder with a Windows build")
            })?;
            Ok(((*name).to_owned(), bytes))
        })
        .collect()
}
