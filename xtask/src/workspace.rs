//! Paths in the workspace, and the cargo that builds it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process::run;

/// The target that the Windows programs are built for on other systems.
pub(crate) const WINDOWS_TARGET: &str = "x86_64-pc-windows-gnu";

/// The target of the 32-bit filter and of the program that tests it.
pub(crate) const WINDOWS_32_TARGET: &str = "i686-pc-windows-gnu";

/// The target of the programs in Linux images, which have no C library.
pub(crate) const STATIC_TARGET: &str = "x86_64-unknown-linux-musl";

/// The version that all packages share.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The repository in files of the chart and of `docs` until it is known.
pub(crate) const NO_REPOSITORY: &str = "OWNER/REPOSITORY";

/// The folder that contains the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace folder").to_owned()
}

/// cargo's folder for what it downloads.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    match env::var_os("CARGO_HOME") {
        Some(path) => Some(path.into()),
        None => Some(env::home_dir()?.join(".cargo")),
    }
}

/// cargo's target folder.
pub(crate) fn target_dir() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The cargo that started this program, to be run in the workspace.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// cargo with flags that keep the paths of this machine, the names of symbols and the time of the
/// build out of the programs for `target`, so that every machine builds the same bytes.
pub(crate) fn cargo_for(target: &str) -> Command {
    // If several prefixes match a path, rustc uses the last one.
    let prefixes = [
        cargo_home().map(|path| (path, "/cargo")),
        Some((root(), "/workspace")),
        Some((target_dir(), "/target")),
    ];
    let mut flags = vec!["-Cstrip=symbols".to_owned()];
    for (path, name) in prefixes.into_iter().flatten() {
        flags.push(format!("--remap-path-prefix={}={name}", path.display()));
    }
    if target == WINDOWS_TARGET {
        // Without the flag, GNU ld writes the time into the header of each program.
        flags.push("-Clink-arg=-Wl,--no-insert-timestamp".to_owned());
    }
    let mut cargo = cargo();
    cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    cargo
}

/// git in the workspace, also where that belongs to another user, as in a container of a workflow:
/// this program is from there.
pub(crate) fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["-c", "safe.directory=*"]);
    git
}

/// Builds all programs for this machine, from what the tests are built from: another selection of
/// packages or targets would have other features, and build much of it twice.
pub(crate) fn build() -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--workspace", "--all-targets"]);
    if cfg!(windows) {
        // Windows does not replace a program that runs, such as this one.
        build.args(["--exclude", "xtask"]);
    }
    run(&mut build)
}

/// `cargo test` for those tests of `targets` that need more than Rust. The packages are those of
/// [`build`].
pub(crate) fn ignored_tests(targets: &[&str]) -> Command {
    let mut test = cargo();
    test.args(["test", "--quiet", "--workspace"]).args(targets).args(["--", "--ignored"]);
    test
}
