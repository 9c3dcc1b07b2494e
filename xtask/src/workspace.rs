//! Paths in the workspace: its folder, its build output and the programs built from it.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target that the Windows programs are built for on other systems.
pub(crate) const WINDOWS_TARGET: &str = "x86_64-pc-windows-gnu";

/// The target of the 32-bit library and of the program that tests it.
pub(crate) const WINDOWS_32_TARGET: &str = "i686-pc-windows-gnu";

/// The folder that contains the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace folder").to_owned()
}

/// cargo's target folder.
pub(crate) fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Has cargo build for Windows. On Windows it does so by default, with the machine's own
/// toolchain.
pub(crate) fn for_windows(cargo: &mut Command) -> &mut Command {
    if cfg!(windows) { cargo } else { cargo.args(["--target", WINDOWS_TARGET]) }
}

/// A file of the debug build for Windows, such as `directx-device-plugin.exe`.
pub(crate) fn windows_build(file: &str) -> PathBuf {
    if cfg!(windows) {
        return native_build(file);
    }
    target_dir().join(WINDOWS_TARGET).join("debug").join(file)
}

/// A file of the debug build for 32-bit Windows.
pub(crate) fn windows_32_build(file: &str) -> PathBuf {
    target_dir().join(WINDOWS_32_TARGET).join("debug").join(file)
}

/// A file of the debug build for this machine.
pub(crate) fn native_build(file: &str) -> PathBuf {
    target_dir().join("debug").join(file)
}

/// A program of the debug build for this machine, such as `directx-device-plugin`.
pub(crate) fn native_program(name: &str) -> PathBuf {
    native_build(&format!("{name}{EXE_SUFFIX}"))
}

/// A program of the release build for this machine.
pub(crate) fn release_program(name: &str) -> PathBuf {
    target_dir().join("release").join(format!("{name}{EXE_SUFFIX}"))
}

/// A path in messages: the same on every system.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string().replace('\\', "/")
}

/// The cargo that started this program, to be run in the workspace.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}
