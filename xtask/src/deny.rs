//! The licences, sources and known faults of what this workspace depends on.
//!
//! `deny.toml` says what is allowed and why. `cargo-deny` holds the lock files against
//! it; it is built here at first, without optimisation, which takes a minute.

use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::process::{self, run, run_logged};
use crate::workspace::{self, cargo};

/// The version whose `deny.toml` this is.
const VERSION: &str = "0.20.2";

/// Whose dependencies are looked at: the workspace's and the fuzz targets'.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "testing/fuzz/Cargo.toml"];

/// How long fetching the database of advisories may take.
const FETCH_LIMIT: Duration = Duration::from_secs(60);

/// Checks every manifest, all of them even if one fails.
pub(crate) fn perform() -> Result<()> {
    let program = installed()?;
    let deny = || {
        let mut deny = Command::new(&program);
        deny.current_dir(workspace::root());
        deny
    };
    let advisories = match within(FETCH_LIMIT, deny().args(["fetch", "db"])) {
        Ok(()) => Some("advisories"),
        Err(why) => {
            println!("SKIPPED: advisories: their database cannot be fetched: {why:#}");
            None
        }
    };
    let results = MANIFESTS.map(|manifest| {
        let mut check = deny();
        check.args(["--log-level", "error", "--manifest-path", manifest, "check"]);
        run(check
            .arg("--hide-inclusion-graph")
            .args(["bans", "licenses", "sources"])
            .args(advisories))
    });
    results.into_iter().collect()
}

/// `cargo-deny` of the right version, installed below the target folder at need.
fn installed() -> Result<PathBuf> {
    let root = workspace::target_dir().join("tools");
    let program = root.join("bin").join(format!("cargo-deny{EXE_SUFFIX}"));
    let version = process::answer(Command::new(&program).arg("--version"));
    if version.is_some_and(|text| text.trim().ends_with(VERSION)) {
        return Ok(program);
    }
    eprintln!("setting up: cargo-deny {VERSION}");
    std::fs::create_dir_all(&root)
        .with_context(|| format!("cannot make the folder `{}`", root.display()))?;
    let mut install = cargo();
    install
        .args(["install", "--quiet", "--locked", "--debug", "--force", "--root"])
        .arg(&root)
        .arg(format!("cargo-deny@{VERSION}"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_TARGET_DIR", root.join("build"));
    run_logged(&mut install, &root.join("cargo-deny.log"))?;
    // Some hundred MiB that nobody needs again.
    std::fs::remove_dir_all(root.join("build")).context("cannot remove what cargo-deny left")?;
    Ok(program)
}

/// Runs `command` quietly; an error unless it exits 0 in time, with its last words.
fn within(limit: Duration, command: &mut Command) -> Result<()> {
    let line = process::line(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {line}"))?;
    let end = Instant::now() + limit;
    while child.try_wait()?.is_none() {
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Err(anyhow!("{line} took longer than {} s", limit.as_secs()));
        }
        sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let words = process::last_lines(&output.stderr, 1);
    Err(anyhow!("{line} ended with {}: {words}", output.status))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let error = within(Duration::from_millis(100), Command::new("sleep").arg("60"));
        assert_eq!(error.unwrap_err().to_string(), "`sleep 60` took longer than 0 s");
    }

    #[test]
    fn a_command_that_fails_is_quoted() {
        let mut command = Command::new("sh");
        let error =
            within(FETCH_LIMIT, command.args(["-c", "echo first >&2; echo last >&2; exit 4"]));
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("exit status: 4: last"), "{error}");
        assert!(within(FETCH_LIMIT, &mut Command::new("true")).is_ok());
    }
}
