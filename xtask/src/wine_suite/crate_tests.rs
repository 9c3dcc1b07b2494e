//! The crates' own tests that run only on Windows, or that take another path there.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::programs::{Programs, output};
use super::test_case::TestCase;
use crate::process::{last_lines, line};
use crate::workspace::{self, cargo};

/// Packages with such tests, and the arguments that select the test program.
const TEST_PROGRAMS: [(&str, &[&str]); 15] = [
    ("discovery_dll", &["--lib"]),
    ("discovery_dll", &["--test", "c_abi"]),
    ("access_rights", &["--lib"]),
    ("uds", &["--lib"]),
    ("kubelet", &["--lib"]),
    ("win32", &["--lib"]),
    ("gpu_lists", &["--lib"]),
    ("visible_process", &["--lib"]),
    ("dxcore_double", &["--lib"]),
    ("dxcore_double", &["--test", "documented"]),
    ("wine_bed", &["--test", "hot_plug"]),
    ("doctor", &["--lib"]),
    ("gpu_probe", &["--lib"]),
    ("plugin", &["--lib"]),
    ("xtask", &["--bins"]),
];

/// Tests of `xtask` that start cargo and git, which Windows has and Wine does not.
const WITHOUT_TOOLS: [&str; 4] = [
    "the_document_lists_what_is_linked_and_nothing_else",
    "this_workspace_follows_the_rule",
    "packages_without_a_text_are_packages_of_the_programs",
    "a_repository_is_read_with_git",
];

/// Builds the test programs, and returns one test for each.
pub(super) fn tests() -> Result<Vec<TestCase>> {
    let mut tests = Vec::new();
    for (package, which) in TEST_PROGRAMS {
        let mut build = cargo();
        build.args(["test", "--no-run", "--target", workspace::WINDOWS_TARGET]);
        build.args(["--package", package]).args(which);
        let result = build.output().with_context(|| format!("cannot run {}", line(&build)))?;
        let text = String::from_utf8_lossy(&result.stderr);
        if !result.status.success() {
            bail!("{} failed with {}:\n{text}", line(&build), result.status);
        }
        tests.extend(executables(&text).map(|(source, path)| {
            TestCase::new(format!("{package}: {source}"), move |programs| run(programs, &path))
        }));
    }
    Ok(tests)
}

/// The source and the file of each test program that cargo reports, in lines such as
/// `Executable unittests src/lib.rs (target/x86_64-pc-windows-gnu/debug/deps/uds-1f.exe)`.
fn executables(text: &str) -> impl Iterator<Item = (String, PathBuf)> {
    text.lines().filter_map(|line| {
        let (source, path) = line.trim_start().strip_prefix("Executable ")?.split_once(" (")?;
        let path = workspace::root().join(path.strip_suffix(')')?);
        Some((source.trim_start_matches("unittests ").to_owned(), path))
    })
}

fn run(programs: &Programs, program: &Path) -> Result<()> {
    // The last lines of a failing test should be its message and not its backtrace.
    let mut tests = programs.host.command(program);
    tests.args(WITHOUT_TOOLS.iter().flat_map(|test| ["--skip", test]));
    let result = output(tests.env("RUST_BACKTRACE", "0"))?;
    if !result.status.success() {
        let text = [result.stdout, result.stderr].concat();
        bail!("{} failed with {}:\n{}", program.display(), result.status, last_lines(&text, 60));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_read_from_the_output_of_cargo() {
        let text = "   Compiling uds v0.1.0\n    Finished `test` profile\n  \
                    Executable unittests src/lib.rs (target/w/debug/deps/uds-47106f.exe)\n  \
                    Executable tests/documented.rs (target/w/debug/deps/documented-1.exe)\n";
        let found: Vec<_> = executables(text).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].0, "src/lib.rs");
        assert!(found[1].1.ends_with("target/w/debug/deps/documented-1.exe"));
    }
}
