//! Compiler flags for programs that are shipped.

use std::process::Command;

use crate::workspace;

/// cargo with flags that keep the paths of this machine, the names of symbols and the time of the
/// build out of the programs for `target`, so that every machine builds the same bytes.
pub(crate) fn cargo(target: &str) -> Command {
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
    if target == workspace::WINDOWS_TARGET {
        // Without the flag, GNU ld writes the time into the header of each program.
        flags.push("-Clink-arg=-Wl,--no-insert-timestamp".to_owned());
    }
    let mut cargo = workspace::cargo();
    cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    cargo
}
