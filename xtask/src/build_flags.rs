//! Compiler flags for programs that are shipped.

use crate::workspace;

/// Flags that keep the time of the build and the paths of this machine out of the
/// programs, so that every machine builds the same bytes.
pub(crate) fn windows() -> Vec<String> {
    // Without the flag, GNU ld writes the time into the header of each program.
    [every_system(), vec!["-Clink-arg=-Wl,--no-insert-timestamp".to_owned()]].concat()
}

/// Flags that keep the paths of this machine and the names of symbols out of programs.
pub(crate) fn every_system() -> Vec<String> {
    // If several prefixes match a path, rustc uses the last one.
    let prefixes = [
        workspace::cargo_home().map(|path| (path, "/cargo")),
        Some((workspace::root(), "/workspace")),
        Some((workspace::target_dir(), "/target")),
    ];
    let mut flags = vec!["-Cstrip=symbols".to_owned()];
    for (path, name) in prefixes.into_iter().flatten() {
        flags.push(format!("--remap-path-prefix={}={name}", path.display()));
    }
    flags
}
