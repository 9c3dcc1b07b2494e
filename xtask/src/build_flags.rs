//! Compiler flags for programs that are shipped.

use std::path::PathBuf;

use crate::workspace;

/// Flags that keep the time of the build and the paths of this machine out of the
/// programs, so that every machine builds the same bytes.
pub(crate) fn windows() -> Vec<String> {
    // Without it, GNU ld writes the time into the header of each program.
    [every_system(), vec!["-Clink-arg=-Wl,--no-insert-timestamp".to_owned()]].concat()
}

/// Flags that keep the paths of this machine and the names of symbols out of programs.
pub(crate) fn every_system() -> Vec<String> {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    // If several prefixes match a path, rustc uses the last one.
    let prefixes = [
        cargo_home.map(|path| (path, "/cargo")),
        Some((workspace::root(), "/workspace")),
        Some((workspace::target_dir(), "/target")),
    ];
    let remapped = prefixes
        .into_iter()
        .flatten()
        .map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    ["-Cstrip=symbols".to_owned()].into_iter().chain(remapped).collect()
}
