//! CUDA and NVML with libraries of these tests: what a driver computes, and every way it can fail.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::{Outcome, probe};

/// Compiles a library of `tests/doubles` into `folder`.
fn compile(source: &str, folder: &Path, library: &str, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doubles").join(source);
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(program);
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "opt-level=2"]).args(flags);
    let status = rustc.arg("-o").arg(folder.join(library)).arg(source).status().unwrap();
    assert!(status.success());
}

/// A folder with all libraries.
pub(crate) fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gpu-libraries");
        std::fs::create_dir_all(&folder).unwrap();
        compile("cuda.rs", &folder, "libcuda.so.1", &[]);
        compile("nvml.rs", &folder, "libnvidia-ml.so.1", &[]);
        folder
    })
}

pub(crate) fn run(arguments: &[&str], folder: &Path, fault: &str) -> Outcome {
    let mut command = probe(arguments);
    command.env("LD_LIBRARY_PATH", folder).env("GPU_PROBE_DOUBLE", fault);
    Outcome::of(&mut command)
}

/// The only API of the report of `api` with a library that has this fault.
pub(crate) fn row(api: &str, fault: &str) -> Value {
    let outcome = run(&[api, "--output", "json"], libraries(), fault);
    let json = outcome.json();
    let row = json["apis"][0].clone();
    let is_ok = row["verdict"] == "ok";
    assert_eq!(outcome.code, Some(i32::from(!is_ok)), "{outcome}");
    assert_eq!(json["verdict"], if is_ok { "ok" } else { "failed" }, "{outcome}");
    row
}

/// The measurement with this name, of the first device.
fn measured(row: &Value, name: &str) -> f64 {
    let measurements = row["devices"][0]["measurements"].as_array().unwrap();
    let found = measurements.iter().find(|measurement| measurement["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {row}"))["value"].as_f64().unwrap()
}

fn device_fault(fault: &str) -> String {
    let row = row("cuda", fault);
    assert_eq!(row["verdict"], "failed", "{row}");
    row["devices"][0]["fault"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn cuda_computes_and_is_measured() {
    let row = row("cuda", "");
    assert_eq!(row["verdict"], "ok", "{row}");
    assert_eq!(row["library"]["version"], "CUDA 12.4");
    let path = row["library"]["path"].as_str().unwrap();
    assert_eq!(Path::new(path), libraries().canonicalize().unwrap().join("libcuda.so.1"));
    let device = &row["devices"][0];
    assert_eq!((&device["name"], &device["luid"]), (&"Double T4".into(), &70_000.into()));
    assert!((measured(&row, "Monte Carlo π") - std::f64::consts::PI).abs() < 0.01);
    for name in ["first run", "32-bit integers", "to device", "on device", "to host"] {
        assert!(measured(&row, name) > 0.0, "{row}");
    }
}

#[test]
fn wrong_results_are_found() {
    let start = "wrong result: 1 of 65536 words differ; word 17 is ";
    assert!(device_fault("wrong").starts_with(start));
    assert!(device_fault("wrong-pi").starts_with(start));
    assert!(device_fault("idle").starts_with("wrong result: 65536 of 65536 words differ"));
    assert!(device_fault("memory").contains("memory that was copied to the device and back"));
}

#[test]
fn errors_of_the_driver_are_named() {
    let fault = device_fault("no-compiler");
    let expected = "cuModuleLoadData failed with 221 (CUDA_ERROR_JIT_COMPILER_NOT_FOUND)";
    assert_eq!(fault, expected);
    assert_eq!(
        device_fault("launch"),
        "cuCtxSynchronize failed with 719 (CUDA_ERROR_LAUNCH_FAILED)"
    );
    let row = row("cuda", "mismatch");
    assert_eq!(
        row["fault"]["message"],
        "cuInit failed with 803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)"
    );
    assert!(row["fault"]["hint"].as_str().unwrap().contains("another driver version"));
}

#[test]
fn a_driver_without_devices_is_reported() {
    assert_eq!(row("cuda", "no-device")["verdict"], "no-device");
}

#[test]
fn a_driver_that_prints_does_not_hide_the_outcome() {
    assert_eq!(row("cuda", "noise")["verdict"], "ok");
}

#[test]
fn a_crash_costs_one_line_and_the_other_tests_continue() {
    let outcome = run(&["cuda", "nvml"], libraries(), "crash");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(
        outcome.stdout.contains(
            "cuda     failed         the process that tests this API ended with signal: 6"
        )
    );
    assert!(outcome.stdout.contains(": double: on purpose\n  hint: "), "{outcome}");
    assert!(outcome.stdout.contains("nvml     ok "), "{outcome}");
    assert!(outcome.stdout.ends_with("failed: 1 ok, 1 failed, 0 absent\n"), "{outcome}");
}

#[test]
fn a_hang_costs_one_line_and_the_time_limit() {
    let outcome = run(&["cuda", "--time-limit", "1"], libraries(), "hang");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stdout.contains("cuda     failed         no result within 1 s"), "{outcome}");
    assert!(
        outcome.stdout.ends_with("failed: 0 ok, 1 failed, 0 absent; no API works\n"),
        "{outcome}"
    );
}

#[test]
fn a_library_that_lacks_a_function_is_too_old() {
    let folder = tempfile::tempdir().unwrap();
    compile("cuda.rs", folder.path(), "libcuda.so.1", &["--cfg", "old"]);
    let outcome = run(&["cuda"], folder.path(), "");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let error =
        "  error: libcuda.so.1 has no function `cuMemcpyHtoD_v2`\n  hint: the library is too old";
    assert!(outcome.stdout.contains(error), "{outcome}");
}

#[test]
fn a_file_that_is_no_library_is_not_absent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libcuda.so.1"), "text").unwrap();
    let outcome = run(&["cuda"], folder.path(), "");
    assert!(outcome.stdout.contains("cuda     failed         libcuda.so.1, "), "{outcome}");
    assert!(outcome.stdout.contains("  error: the library cannot be loaded: "), "{outcome}");
}

#[test]
fn nvml_lists_and_reports_the_load() {
    let text = run(&["nvml"], libraries(), "").stdout;
    let device = "  Double T4, 16384 MiB, driver 553.62, memory in use 1024 MiB, GPU utilization 42 %, \
                  memory utilization 7 %, compute processes 3\n";
    assert!(text.contains(device), "{text}");
    let text = run(&["nvml"], libraries(), "wddm").stdout;
    assert!(
        text.contains("  Double T4, 16384 MiB, driver 553.62, memory in use 1024 MiB\n"),
        "{text}"
    );
}

#[test]
fn faults_of_nvml_are_named() {
    assert_eq!(row("nvml", "no-driver")["fault"]["message"], "nvmlInit failed with 9");
    assert_eq!(row("nvml", "mismatch")["verdict"], "failed");
    let fault = row("nvml", "lost")["devices"][0]["fault"]["message"].clone();
    assert_eq!(fault, "nvmlDeviceGetHandleByIndex failed with 15");
}

#[test]
fn a_load_is_kept_up_for_the_given_time() {
    let json = run(&["cuda", "--burn", "1", "--output", "json"], libraries(), "").json();
    let row = &json["apis"][0];
    assert!(measured(row, "burned") >= 1.0);
    assert!(measured(row, "verified runs") >= 1.0);
}

/// Compares the visible adapters with the LUIDs of the shared variable and of a resource's variable.
fn compare(shared: &str, of_resource: &str) -> Outcome {
    let mut command = probe(&["cuda", "--expect"]);
    command.env("LD_LIBRARY_PATH", libraries()).env("DIRECTX_VISIBLE_DEVICES", shared);
    Outcome::of(command.env("DIRECTX_VISIBLE_DEVICES_EXAMPLE_COM_GPU", of_resource))
}

#[test]
fn visible_adapters_are_compared_with_the_allocated_ones() {
    let outcome = compare("70000", "70000");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.contains("adapters ok             1 allocated, 1 visible\n"));
    let outcome = compare("5", "5");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stdout.contains("LUID 70000 is visible, but was not allocated"), "{outcome}");
    // The kubelet kept the other resource's value of the shared variable.
    let outcome = compare("5", "70000");
    assert!(outcome.stdout.contains("LUID 5 was allocated"), "{outcome}");
    assert!(outcome.stdout.contains("2 allocated, 1 visible"), "{outcome}");
}
