//! `cargo xtask setup`: what building and testing need and Rust does not bring.
//!
//! On Debian and its children as root everything is installed; elsewhere the
//! message says what is missing and how to get it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::wine::Wine;
use crate::{process, workspace};

/// A program that must be on the machine, and the Debian package that has it.
struct Tool {
    program: &'static str,
    package: &'static str,
}

/// The C side of the Windows target.
const MINGW: &[Tool] = &[
    Tool { program: "x86_64-w64-mingw32-gcc", package: "gcc-mingw-w64-x86-64" },
    Tool { program: "x86_64-w64-mingw32-g++", package: "g++-mingw-w64-x86-64" },
];

pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    if let Some(argument) = arguments.first() {
        bail!("`setup` takes no arguments, not `{}`", argument.display());
    }
    for_lints()?;
    for_windows_builds()?;
    for_fuzz_builds()?;
    Wine::ready("prefix")?;
    println!("ready");
    Ok(ExitCode::SUCCESS)
}

/// Makes sure that `cargo fmt` and `cargo clippy` are there, which a minimal Rust lacks.
pub(crate) fn for_lints() -> Result<()> {
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if process::answer(workspace::cargo().args([command, "--version"])).is_none() {
            eprintln!("setting up: {component}");
            process::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

/// Makes sure that the workspace can be built for Windows.
pub(crate) fn for_windows_builds() -> Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    need(MINGW)?;
    rust_target(workspace::WINDOWS_TARGET)
}

/// Makes sure that libFuzzer, which is C++, can be built.
pub(crate) fn for_fuzz_builds() -> Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    need(&[Tool { program: "g++", package: "g++" }])
}

/// Makes sure that debootstrap and what it needs are there.
pub(crate) fn for_wine_root() -> Result<()> {
    need(&[
        Tool { program: "debootstrap", package: "debootstrap" },
        // debootstrap refuses archives whose signature it cannot check.
        Tool {
            program: "/usr/share/keyrings/debian-archive-keyring.gpg",
            package: "debian-archive-keyring",
        },
        Tool { program: "unshare", package: "util-linux" },
        Tool { program: "setpriv", package: "util-linux" },
        Tool { program: "chroot", package: "coreutils" },
    ])
}

/// Whether this process may do what only root may.
pub(crate) fn is_root() -> bool {
    process::answer(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0")
}

fn rust_target(target: &str) -> Result<()> {
    let rustc = || Command::new("rustc");
    let installed = process::answer(rustc().args(["--print", "target-libdir", "--target", target]))
        .is_some_and(|dir| Path::new(dir.trim()).is_dir());
    if installed {
        return Ok(());
    }
    eprintln!("setting up: the standard library for {target}");
    process::run(Command::new("rustup").args(["target", "add", target]))
}

fn need(tools: &[Tool]) -> Result<()> {
    let missing = || tools.iter().filter(|tool| !is_there(tool.program));
    let packages: Vec<&str> = missing().map(|tool| tool.package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if !is_there("apt-get") {
        let names: Vec<&str> = missing().map(|tool| tool.program).collect();
        bail!("{} missing\nhint: install them; Debian's packages are {list}", names.join(", "));
    }
    if !is_root() {
        bail!("packages missing: {list}\nhint: run `sudo apt-get install {list}`");
    }
    eprintln!("setting up: {list}");
    let log = workspace::target_dir().join("setup.log");
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    // One archive of many that does not answer is no reason to give up: whether the
    // packages can be had is seen when they are installed.
    let _ = process::run_logged(apt().arg("update"), &log);
    let install = ["install", "--yes", "--no-install-recommends"];
    process::run_logged(apt().args(install).args(&packages), &log)
}

/// Whether `program` is a file, or on the path, or where root's programs are.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert!(is_there("sh"));
        assert!(is_there("/bin/sh"));
        assert!(!is_there("no-such-program"));
        assert!(!is_there("/bin"));
    }
}
