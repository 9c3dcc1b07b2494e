//! Tools that tests and builds need and that Rust does not bring.
//!
//! On Debian, as root, missing packages are installed. Elsewhere the error names them.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{run, stdout};
use crate::workspace::{STATIC_TARGET, WINDOWS_32_TARGET, WINDOWS_TARGET, cargo};

/// A Debian package, and a program in `PATH` or a file that shows that it is installed.
type Package = (&'static str, &'static str);

const MINGW: &[Package] = &[
    ("gcc-mingw-w64-x86-64", "x86_64-w64-mingw32-gcc"),
    ("g++-mingw-w64-x86-64", "x86_64-w64-mingw32-g++"),
    ("gcc-mingw-w64-i686", "i686-w64-mingw32-gcc"),
];

/// A client of registries, readers of registry hives, and what unpacks and signs a release.
pub(crate) const IMAGE_TESTS: &[Package] = &[
    ("skopeo", "skopeo"),
    ("libhivex-bin", "hivexml"),
    ("reglookup", "reglookup"),
    ("unzip", "unzip"),
    ("openssl", "openssl"),
    ("osslsigncode", "osslsigncode"),
];

/// Software devices for Vulkan, OpenGL and `OpenCL`, and headers and compilers for the tests.
pub(crate) const GPU_TESTS: &[Package] = &[
    ("libvulkan1", "/usr/share/doc/libvulkan1/copyright"),
    ("mesa-vulkan-drivers", "/usr/share/doc/mesa-vulkan-drivers/copyright"),
    ("ocl-icd-libopencl1", "/usr/share/doc/ocl-icd-libopencl1/copyright"),
    ("pocl-opencl-icd", "/etc/OpenCL/vendors/pocl.icd"),
    ("libegl1", "/usr/share/doc/libegl1/copyright"),
    ("libegl-mesa0", "/usr/share/doc/libegl-mesa0/copyright"),
    ("libgl1-mesa-dri", "/usr/share/doc/libgl1-mesa-dri/copyright"),
    ("libffmpeg-nvenc-dev", "/usr/include/ffnvcodec/nvEncodeAPI.h"),
    ("libvpl-dev", "/usr/include/vpl/mfxvideo.h"),
    ("glslang-tools", "glslangValidator"),
    ("spirv-tools", "spirv-opt"),
];

/// What downloads a package of the Python Package Index.
pub(crate) const PYTHON_PACKAGES: &[Package] = &[("python3-pip", "pip3")];

/// Installs `cargo fmt` and `cargo clippy`, which a minimal Rust installation lacks.
pub(crate) fn for_lints() -> Result<()> {
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if stdout(cargo().args([command, "--version"])).is_none() {
            run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

/// Installs what builds for Windows need.
pub(crate) fn for_windows_builds() -> Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    install(MINGW)?;
    [WINDOWS_TARGET, WINDOWS_32_TARGET].into_iter().try_for_each(for_target)
}

/// Installs what static builds for Linux need.
pub(crate) fn for_static_builds() -> Result<()> {
    install(&[("musl-tools", "musl-gcc")])?;
    for_target(STATIC_TARGET)
}

/// Installs Rust's standard library for `target`.
fn for_target(target: &str) -> Result<()> {
    let folder = ["--print", "target-libdir", "--target", target];
    let folder = stdout(Command::new("rustc").args(folder)).unwrap_or_default();
    if Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    run(Command::new("rustup").args(["target", "add", target]))
}

pub(crate) fn for_cpp_builds() -> Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    install(&[("g++", "g++")])
}

/// Fails unless Go is installed.
pub(crate) fn require_go() -> Result<()> {
    if stdout(Command::new("go").arg("version")).is_none() {
        bail!("Go is not installed\nhint: install Go 1.26 or newer from https://go.dev/dl");
    }
    Ok(())
}

/// Installs the packages that are missing.
pub(crate) fn install(packages: &[Package]) -> Result<()> {
    let missing = packages.iter().filter(|(_, sign)| !is_installed(sign));
    let missing: Vec<&str> = missing.map(|(package, _)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    let is_root = stdout(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    if cfg!(windows) || !is_installed("apt-get") || !is_root {
        bail!("missing packages: {list}\nhint: run `sudo apt-get install {list}`, or install them");
    }
    eprintln!("installing {list}");
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        run(apt.arg("--quiet=2").args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // It fails if one of several archives does not answer. The installation shows whether the
    // packages can be had.
    let _ = apt(&["update"]);
    apt(&[&["install", "--yes", "--no-install-recommends"], &missing[..]].concat())
}

/// Whether `sign` is a file, or a program in `PATH` or in root's program folders.
fn is_installed(sign: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(sign)).any(|file| file.is_file())
}
