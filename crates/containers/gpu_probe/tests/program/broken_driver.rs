//! What the report says if the files of a driver exist and do not work.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use crate::{Outcome, probe};

/// Runs the program with the libraries in `folder`.
fn run(arguments: &[&str], folder: &Path) -> Outcome {
    Outcome::of(probe(arguments).env("LD_LIBRARY_PATH", folder))
}

fn compile_cuda(library: &Path) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program");
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(program);
    rustc.args(["--edition", "2024", "--cap-lints", "allow"]);
    rustc.args(["--crate-type", "cdylib", "-o"]).arg(library);
    assert!(rustc.arg(tests.join("cuda_of_another_driver.rs")).status().unwrap().success());
}

#[test]
fn the_driver_s_error_and_a_missing_function_are_reported_with_a_fix() {
    let folder = tempfile::tempdir().unwrap();
    let cuda = folder.path().join("libcuda.so.1");
    compile_cuda(&cuda);
    // A library that has no function of NVML.
    std::fs::copy(&cuda, folder.path().join("libnvidia-ml.so.1")).unwrap();
    let outcome = run(&["cuda", "nvml"], folder.path());
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let headlines = [lines[0], lines[3]].map(|line| line.split('/').next().unwrap());
    assert_eq!(headlines, ["cuda     failed         ", "nvml     failed         "], "{outcome}");
    assert_eq!(
        [&lines[1..3], &lines[4..]].concat(),
        [
            "  error: cuInit failed with 803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)",
            "  hint: the container has CUDA files of another driver version: remove them from the \
             image, and restart the container after the node's driver was replaced",
            "  error: libnvidia-ml.so.1 has no function `nvmlInit_v2`",
            "  hint: the library is too old or not the driver's: check the driver's version",
            "failed: 0 ok, 2 failed, 0 absent; no API works",
        ],
        "{outcome}"
    );
}

#[test]
fn a_file_that_is_no_library_is_not_absent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libcuda.so.1"), "text").unwrap();
    let outcome = run(&["cuda"], folder.path());
    assert!(outcome.stdout.contains("cuda     failed         libcuda.so.1, "), "{outcome}");
    assert!(outcome.stdout.contains("  error: the library cannot be loaded: "), "{outcome}");
}
