//! The licences, sources and advisories of what this workspace depends on.
//!
//! `deny.toml` says what is allowed and why, and `cargo-deny` checks the lock files
//! against it. It is built once per machine, without optimisation, which takes some
//! minutes.

use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::process::{last_lines, line, output_within, run, run_logged};
use crate::skipped_part::SkippedPart;
use crate::workspace::{self, cargo};

/// The version that reads our `deny.toml`.
const VERSION: &str = "0.20.2";

/// The packages whose dependencies are checked: the workspace and the fuzz targets.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "testing/fuzz/Cargo.toml"];

/// How long fetching the advisory database may take.
const FETCH_LIMIT: Duration = Duration::from_secs(60);

/// Checks every manifest, also after one has failed.
/// Without the advisories if their database cannot be fetched.
pub(crate) fn check() -> Result<Vec<SkippedPart>> {
    let program = installed()?;
    let deny = || {
        let mut deny = Command::new(&program);
        deny.current_dir(workspace::root());
        deny
    };
    let fetched = quietly_within(FETCH_LIMIT, deny().args(["fetch", "db"]));
    let advisories = fetched.is_ok().then_some("advisories");
    let results = MANIFESTS.map(|manifest| {
        let mut check = deny();
        check.args(["--log-level", "error", "--manifest-path", manifest, "check"]);
        run(check
            .arg("--hide-inclusion-graph")
            .args(["bans", "licenses", "sources"])
            .args(advisories))
    });
    results.into_iter().collect::<Result<()>>()?;
    let skipped = fetched.err().map(|error| {
        let reason = format!("their database cannot be fetched: {error:#}");
        SkippedPart::new("advisories", reason)
    });
    Ok(skipped.into_iter().collect())
}

/// `cargo-deny`, installed in the user's cache if it is not there.
fn installed() -> Result<PathBuf> {
    let cache = Cache::open()?;
    let name = "cargo-deny";
    let folder = cache.entry(name, &[VERSION], |folder| {
        eprintln!("installing cargo-deny {VERSION} (once per machine; some minutes)");
        let build = folder.join("build");
        let mut install = cargo();
        install
            .args(["install", "--quiet", "--locked", "--debug", "--root"])
            .arg(folder)
            .arg(format!("cargo-deny@{VERSION}"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_TARGET_DIR", &build);
        run_logged(&mut install, &cache.log(name)?)?;
        // Some hundred MiB of build output.
        std::fs::remove_dir_all(build).context("cannot remove the build of cargo-deny")
    })?;
    Ok(folder.join("bin").join(format!("cargo-deny{EXE_SUFFIX}")))
}

/// Runs `command` without showing its output; an error unless it exits 0 within `limit`.
fn quietly_within(limit: Duration, command: &mut Command) -> Result<()> {
    let output = output_within(limit, command)?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{} failed with {}: {}", line(command), output.status, last_lines(&output.stderr, 1))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_last_line_of_the_output() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo last >&2; exit 4"]);
        let error = quietly_within(FETCH_LIMIT, &mut command).unwrap_err().to_string();
        assert!(error.ends_with("exit status: 4: last"), "{error}");
        assert!(quietly_within(FETCH_LIMIT, &mut Command::new("true")).is_ok());
    }
}
