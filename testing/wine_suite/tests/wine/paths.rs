//! Where files are: in the workspace, and what cargo has built.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const WINDOWS: &str = "x86_64-pc-windows-gnu";
pub(crate) const WINDOWS_32: &str = "i686-pc-windows-gnu";

/// The libraries that `directx-visible` puts into programs: the usual one and that for 32-bit
/// programs.
pub(crate) const FILTER: &str = "directx-visible-filter.dll";
pub(crate) const FILTER_32: &str = "directx-visible-filter32.dll";

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate is in a folder of the workspace's").to_owned()
}

pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()))
}

/// A program of the debug build for this machine.
pub(crate) fn native_build(file: &str) -> PathBuf {
    built(target().join("debug").join(file))
}

/// A file of the debug build for Windows.
pub(crate) fn windows_build(file: &str) -> PathBuf {
    built(target().join(WINDOWS).join("debug").join(file))
}

/// A file of the debug build for 32-bit Windows.
pub(crate) fn windows_32_build(file: &str) -> PathBuf {
    built(target().join(WINDOWS_32).join("debug").join(file))
}

fn built(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is not built; run `cargo xtask test wine`", path.display());
    path
}

/// A tool that `cargo xtask setup` downloads into the user's cache directory.
pub(crate) fn tool(path: &str) -> PathBuf {
    let user = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let user = user.or_else(|| Some(env::home_dir()?.join(".cache"))).expect("a home directory");
    let tool = user.join("directx-device-plugin").join(path);
    assert!(tool.exists(), "{} is missing; run `cargo xtask setup`", tool.display());
    tool
}

/// Copies every filter into `folder`.
pub(crate) fn copy_filters(folder: &Path) {
    for (target_triple, file) in [(WINDOWS, FILTER), (WINDOWS_32, FILTER_32)] {
        copy(&built(target().join(target_triple).join("filter").join(file)), folder);
    }
}

/// Copies `file` into `folder`, and returns the path of the copy.
pub(crate) fn copy(file: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join(file.file_name().expect("a file has a name"));
    fs::copy(file, &copy).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    copy
}

/// An inventory of `fixtures`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    root().join("fixtures/inventories").join(format!("{name}.yaml"))
}

/// The inventories in a folder of the workspace.
pub(crate) fn inventories(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

/// `path` as Windows programs under Wine spell it.
pub(crate) fn windows_path(path: &Path) -> String {
    format!("Z:{}", path.display()).replace('/', "\\")
}
