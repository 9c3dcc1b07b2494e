//! The crates' own tests that only Windows runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Test;
use super::programs::{DEADLINE, Programs, output};
use crate::process::{last_lines, line};
use crate::workspace::{self, cargo};

/// The tests that only Windows runs: package, and which of its test programs.
const PROGRAMS: [(&str, &[&str]); 9] = [
    ("discovery_dll", &["--lib"]),
    ("discovery_dll", &["--test", "c_abi"]),
    ("uds", &["--lib"]),
    ("win32", &["--lib"]),
    ("dxcore_double", &["--lib"]),
    ("dxcore_double", &["--test", "documented"]),
    ("wine_bed", &["--test", "hot_plug"]),
    ("doctor", &["--lib"]),
    ("plugin", &["--lib"]),
];

/// A test for each of the programs.
pub(super) fn tests() -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for (package, which) in PROGRAMS {
        let mut build = cargo();
        build.args(["test", "--no-run", "--target", workspace::WINDOWS_TARGET]);
        build.args(["--package", package]).args(which);
        let result = build.output().with_context(|| format!("cannot run {}", line(&build)))?;
        let text = String::from_utf8_lossy(&result.stderr);
        if !result.status.success() {
            bail!("{} ended with {}:\n{text}", line(&build), result.status);
        }
        tests.extend(programs(&text).map(|(source, path)| {
            Test::new(format!("{package}: {source}"), move |programs| run(programs, &path))
        }));
    }
    Ok(tests)
}

/// Source and file of each program that cargo says it has built, in lines such as
/// `Executable unittests src/lib.rs (target/x86_64-pc-windows-gnu/debug/deps/uds-1f.exe)`.
fn programs(text: &str) -> impl Iterator<Item = (String, PathBuf)> {
    text.lines().filter_map(|line| {
        let (source, path) = line.trim_start().strip_prefix("Executable ")?.split_once(" (")?;
        let path = workspace::root().join(path.strip_suffix(')')?);
        Some((source.trim_start_matches("unittests ").to_owned(), path))
    })
}

fn run(programs: &Programs, program: &Path) -> Result<()> {
    // A failing test's last lines should be its message and not its stack.
    let mut tests = programs.bed.command(program);
    let result = output(tests.env("RUST_BACKTRACE", "0"), DEADLINE)?;
    if !result.status.success() {
        let text = [result.stdout, result.stderr].concat();
        bail!("{} ended with {}:\n{}", program.display(), result.status, last_lines(&text, 60));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read_from_what_cargo_says() {
        let text = "   Compiling uds v0.1.0\n    Finished `test` profile\n  \
                    Executable unittests src/lib.rs (target/w/debug/deps/uds-47106f.exe)\n  \
                    Executable tests/documented.rs (target/w/debug/deps/documented-1.exe)\n";
        let found: Vec<_> = programs(text).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].0, "src/lib.rs");
        assert!(found[1].1.ends_with("target/w/debug/deps/documented-1.exe"));
    }
}
