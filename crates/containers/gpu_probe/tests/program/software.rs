//! Real libraries with software devices, and the tools that made the checked-in kernels. They run
//! with `cargo xtask test gpu`, which installs what they need.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use crate::{Outcome, probe};

fn kernels() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

/// The report about `api`, whose devices are software.
fn report(api: &str) -> serde_json::Value {
    let strict = Outcome::of(&mut probe(&[api, "--output", "json"]));
    assert_eq!(strict.code, Some(1), "{strict}");
    assert_eq!(strict.json()["apis"][0]["verdict"], "software-only", "{strict}");
    let outcome = Outcome::of(&mut probe(&[api, "--allow-software", "--output", "json"]));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let row = outcome.json()["apis"][0].clone();
    assert_eq!(row["verdict"], "ok", "{outcome}");
    for device in row["devices"].as_array().unwrap() {
        assert_eq!(device["fault"], serde_json::Value::Null, "{outcome}");
        assert!(device["firstRunMilliseconds"].is_u64(), "{outcome}");
    }
    row
}

#[test]
#[ignore = "needs Mesa's software Vulkan; `cargo xtask test gpu` installs it"]
fn vulkan_computes() {
    let row = report("vulkan");
    let name = row["devices"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("llvmpipe"), "{row}");
    assert!(row["library"]["path"].as_str().unwrap().contains("libvulkan.so.1"), "{row}");
}

#[test]
#[ignore = "needs pocl; `cargo xtask test gpu` installs it"]
fn opencl_computes() {
    let row = report("opencl");
    assert!(row["library"]["version"].as_str().unwrap().contains("PoCL"), "{row}");
}

#[test]
#[ignore = "needs Mesa's software OpenGL; `cargo xtask test gpu` installs it"]
fn opengl_computes() {
    let row = report("opengl");
    let name = row["devices"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("llvmpipe"), "{row}");
    let library = &row["library"];
    let path = library["path"].as_str().unwrap();
    assert!(path.contains("libEGL.so.1"), "{row}");
    assert_eq!(path.split_once(".so.").unwrap().1, library["fileVersion"], "{row}");
}

#[test]
#[ignore = "needs the EGL loader; `cargo xtask test gpu` installs it"]
fn an_opengl_loader_without_drivers_says_so() {
    let mut command = probe(&["opengl"]);
    let outcome = Outcome::of(command.env("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent.json"));
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stdout.contains("opengl   no-device "), "{outcome}");
}

#[test]
#[ignore = "needs the Vulkan loader; `cargo xtask test gpu` installs it"]
fn a_vulkan_loader_without_drivers_says_so() {
    let mut command = probe(&["vulkan"]);
    let none = "/nonexistent.json";
    let outcome = Outcome::of(command.env("VK_ICD_FILENAMES", none).env("VK_DRIVER_FILES", none));
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(
        outcome.stdout.contains("ERROR_INCOMPATIBLE_DRIVER\n  hint: the loader found no driver")
    );
}

#[test]
#[ignore = "needs the OpenCL loader; `cargo xtask test gpu` installs it"]
fn an_opencl_loader_without_drivers_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = probe(&["opencl"]);
    let outcome = Outcome::of(command.env("OCL_ICD_VENDORS", folder.path()));
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stdout.contains("opencl   no-device "), "{outcome}");
}

#[test]
#[ignore = "needs glslang and SPIRV-Tools; `cargo xtask test gpu` installs them"]
fn the_spirv_is_that_of_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, optimized] = ["plain.spv", "mix.spv"].map(|name| folder.path().join(name));
    let tool = |program: &str, arguments: &[&str], files: &[&Path]| {
        let output = Command::new(program).args(arguments).args(files).output().unwrap();
        assert!(output.status.success(), "{program}: {output:?}");
    };
    let compile = ["-V", "--target-env", "vulkan1.0", "-o"];
    tool("glslangValidator", &compile, &[&plain, &kernels().join("mix.comp")]);
    tool("spirv-opt", &["-O", "--strip-debug", "-o"], &[&optimized, &plain]);
    tool("spirv-val", &["--target-env", "vulkan1.0"], &[&kernels().join("mix.spv")]);
    let [made, kept] = [optimized, kernels().join("mix.spv")].map(|f| std::fs::read(f).unwrap());
    assert!(made == kept, "copy {} to kernels", folder.keep().join("mix.spv").display());
}
