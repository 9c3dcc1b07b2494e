//! Tools that building and testing need and that Rust does not bring.
//!
//! On Debian and its derivatives, as root, missing tools are installed. Elsewhere the
//! error names what is missing and how to get it. On Windows the steps that run need only
//! Rust and Go.

use std::env::consts::EXE_SUFFIX;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::{process, workspace};

/// A program that must be on the machine, and the Debian package that contains it.
struct Tool {
    program: &'static str,
    package: &'static str,
}

/// The C and C++ compilers for the Windows target.
const MINGW: &[Tool] = &[
    Tool { program: "x86_64-w64-mingw32-gcc", package: "gcc-mingw-w64-x86-64" },
    Tool { program: "x86_64-w64-mingw32-g++", package: "g++-mingw-w64-x86-64" },
];

/// The same for 32-bit Windows; no C++ is compiled for it.
const MINGW_32: &[Tool] =
    &[Tool { program: "i686-w64-mingw32-gcc", package: "gcc-mingw-w64-i686" }];

/// Installs `cargo fmt` and `cargo clippy`, which a minimal Rust installation lacks.
pub(crate) fn for_lints() -> Result<()> {
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if process::stdout(workspace::cargo().args([command, "--version"])).is_none() {
            eprintln!("installing {component}");
            process::run(Command::new("rustup").args(["component", "add", component]))?;
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
    install_rust_target(workspace::WINDOWS_TARGET)
}

/// Installs what builds for 32-bit Windows need.
pub(crate) fn for_32_bit_builds() -> Result<()> {
    install(MINGW_32)?;
    install_rust_target(workspace::WINDOWS_32_TARGET)
}

/// Installs a C++ compiler for libFuzzer.
pub(crate) fn for_fuzz_builds() -> Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    install(&[Tool { program: "g++", package: "g++" }])
}

/// Installs what the tests of images use: a client of registries, readers of registry
/// hives, and the tools that unpack and isolate daemons.
pub(crate) fn for_image_tests() -> Result<()> {
    install(&[
        Tool { program: "skopeo", package: "skopeo" },
        Tool { program: "hivexml", package: "libhivex-bin" },
        Tool { program: "reglookup", package: "reglookup" },
        Tool { program: "dpkg-deb", package: "dpkg" },
        Tool { program: "unshare", package: "util-linux" },
        Tool { program: "setpriv", package: "util-linux" },
    ])
}

/// Installs what downloads a package of the Python Package Index.
pub(crate) fn for_python_packages() -> Result<()> {
    install(&[
        Tool { program: "pip3", package: "python3-pip" },
        Tool { program: "python3", package: "python3" },
    ])
}

/// Installs software devices for Vulkan and `OpenCL`, and the compiler of the Vulkan shader.
pub(crate) fn for_gpu_tests() -> Result<()> {
    // The paths of libraries depend on the machine; these files do not.
    install(&[
        Tool { program: "/usr/share/doc/libvulkan1/copyright", package: "libvulkan1" },
        Tool {
            program: "/usr/share/doc/mesa-vulkan-drivers/copyright",
            package: "mesa-vulkan-drivers",
        },
        Tool {
            program: "/usr/share/doc/ocl-icd-libopencl1/copyright",
            package: "ocl-icd-libopencl1",
        },
        Tool { program: "/etc/OpenCL/vendors/pocl.icd", package: "pocl-opencl-icd" },
        Tool { program: "/usr/share/doc/libegl1/copyright", package: "libegl1" },
        Tool { program: "/usr/share/doc/libegl-mesa0/copyright", package: "libegl-mesa0" },
        Tool { program: "/usr/share/doc/libgl1-mesa-dri/copyright", package: "libgl1-mesa-dri" },
        Tool { program: "/usr/include/ffnvcodec/nvEncodeAPI.h", package: "libffmpeg-nvenc-dev" },
        Tool { program: "/usr/include/vpl/mfxvideo.h", package: "libvpl-dev" },
        Tool { program: "glslangValidator", package: "glslang-tools" },
        Tool { program: "spirv-opt", package: "spirv-tools" },
    ])
}

/// Fails unless Go is installed. `purpose` says what Go builds here.
pub(crate) fn require_go(purpose: &str, version: &str) -> Result<()> {
    if process::stdout(Command::new("go").arg("version")).is_none() {
        bail!(
            "Go is not installed; it builds {purpose}\nhint: install Go {version} or newer from https://go.dev/dl"
        );
    }
    Ok(())
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    process::stdout(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0")
}

fn install_rust_target(target: &str) -> Result<()> {
    let mut rustc = Command::new("rustc");
    let installed = process::stdout(rustc.args(["--print", "target-libdir", "--target", target]))
        .is_some_and(|folder| Path::new(folder.trim()).is_dir());
    if installed {
        return Ok(());
    }
    eprintln!("installing the Rust target {target}");
    process::run(Command::new("rustup").args(["target", "add", target]))
}

fn install(tools: &[Tool]) -> Result<()> {
    let missing = || tools.iter().filter(|tool| !is_installed(tool.program));
    let packages: Vec<&str> = missing().map(|tool| tool.package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    // Some Unix environments for Windows have a program of this name.
    if cfg!(windows) || !is_installed("apt-get") {
        let names: Vec<&str> = missing().map(|tool| tool.program).collect();
        bail!(
            "missing tools: {}\nhint: install them; in Debian the packages are {list}",
            names.join(", ")
        );
    }
    if !is_root() {
        bail!("missing packages: {list}\nhint: run `sudo apt-get install {list}`");
    }
    eprintln!("installing {list}");
    let log = workspace::target_dir().join("apt-get.log");
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    // The update fails if one of several archives does not answer. Whether the packages
    // are available shows when they are installed.
    let _ = process::run_logged(apt().arg("update"), &log);
    let arguments = ["install", "--yes", "--no-install-recommends"];
    process::run_logged(apt().args(arguments).args(&packages), &log)
}

/// Whether `program` is a file, or in PATH, or in root's program folders.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(format!("{program}{EXE_SUFFIX}")).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        let (name, folder) =
            if cfg!(windows) { ("cmd", r"C:\Windows\System32") } else { ("sh", "/bin") };
        assert!(is_installed(name));
        assert!(is_installed(Path::new(folder).join(name).to_str().unwrap()));
        assert!(!is_installed("no-such-program"));
        assert!(!is_installed(folder));
    }
}
