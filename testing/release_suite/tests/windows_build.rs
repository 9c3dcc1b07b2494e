//! The programs of a build on Windows run on every Windows Server.

#![cfg(all(windows, target_env = "msvc"))]
#![allow(clippy::unwrap_used, reason = "a test")]

mod windows_program;

use std::path::Path;
use std::process::Command;

#[test]
fn windows_finds_every_import_of_the_programs() {
    let mut build = Command::new(env!("CARGO"));
    let packages =
        ["-p=plugin", "-p=tools", "-p=discovery_dll", "-p=gpu_probe", "-p=directx_visible"];
    assert!(build.args(["build", "--quiet"]).args(packages).status().unwrap().success());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("debug");
    for name in [
        "directx-device-plugin.exe",
        "device-plugin-wddm.exe",
        "device-plugin-mcdm.exe",
        "gen-device-mounts.exe",
        "query-hcs-capabilities.exe",
        "test-device-discovery.exe",
        "gpu-probe.exe",
        "directx-visible.exe",
        "directx_device_discovery.dll",
    ] {
        windows_program::check(&folder.join(name), env!("CARGO_PKG_VERSION"));
    }
}
