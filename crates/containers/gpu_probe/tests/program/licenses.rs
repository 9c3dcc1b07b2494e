//! What the report says of the licenses of NVIDIA's driver.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use crate::{Outcome, probe};

/// The lines of the devices with an NVML that is compiled with `options`.
fn devices(options: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/nvml_of_a_vgpu.rs");
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(program);
    rustc.args(["--edition", "2024", "--cap-lints", "allow"]);
    rustc.args(["--crate-type", "cdylib"]).args(options);
    rustc.arg("-o").arg(folder.path().join("libnvidia-ml.so.1")).arg(source);
    assert!(rustc.status().unwrap().success());
    let outcome = Outcome::of(probe(&["nvml"]).env("LD_LIBRARY_PATH", folder.path()));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    outcome.stdout.lines().filter(|line| line.starts_with("  NVIDIA")).map(str::to_owned).collect()
}

#[test]
fn each_gpu_has_its_license() {
    assert_eq!(
        devices(&[]),
        [
            "  NVIDIA A10-24Q, driver 553.62, licensed until 2026-12-01T10:00:01Z",
            "  NVIDIA A10-12Q, driver 553.62, unlicensed",
            "  NVIDIA A10, driver 553.62",
        ]
    );
}

#[test]
fn an_earlier_driver_does_not_report_when_a_license_expires() {
    assert_eq!(
        devices(&["--cfg", "earlier"]),
        [
            "  NVIDIA A10-24Q, driver 553.62, licensed",
            "  NVIDIA A10-12Q, driver 553.62, unlicensed",
            "  NVIDIA A10, driver 553.62",
        ]
    );
}

#[test]
fn a_driver_that_does_not_report_licenses_is_no_fault() {
    let lines = devices(&["--cfg", "old"]);
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| !line.contains("licensed")), "{lines:?}");
}
