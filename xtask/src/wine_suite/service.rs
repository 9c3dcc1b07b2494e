//! The daemon as a service of Wine's service manager.
//!
//! Windows services have none of the variables that make the `dxcore.dll` of the bed present an
//! inventory, so the service itself gets one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::programs::{Programs, output, stdout};
use super::test_case::TestCase;
use crate::process::run;
use crate::wine::windows_path;
use crate::workspace;

/// The tests, by name.
pub(super) fn tests() -> Vec<TestCase> {
    vec![
        TestCase::new("service: install, start, stop, uninstall", life),
        TestCase::new("service: errors", errors),
    ]
}

const NAME: &str = "directx-device-plugin";

/// Longer than the service takes for a step on a slow machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Longer than the two minutes of a delayed start.
const LEFTOVER_DEADLINE: Duration = Duration::from_secs(240);

fn install(programs: &Programs) -> Result<String> {
    let inventory = workspace::root().join("fixtures/inventories/aws-t4-two.yaml");
    let inventory = windows_path(&inventory);
    let options = ["service", "install", "--", "--driver-model", "wddm", "--inventory", &inventory];
    stdout(&mut programs.windows(&options))
}

/// Windows' own program for services.
fn net(programs: &Programs, verb: &str) -> Result<()> {
    run(programs.host.command(Path::new("net.exe")).args([verb, NAME]))
}

fn log_file(programs: &Programs) -> PathBuf {
    // Wine's prefix spells the folder in small letters.
    programs.host.drive_c().join("windows/logs/directx-device-plugin.log")
}

/// Waits until the log contains `text` at least this many times.
fn expect_in_log(programs: &Programs, text: &str, times: usize) -> Result<()> {
    let started = Instant::now();
    loop {
        let log = fs::read_to_string(log_file(programs)).unwrap_or_default();
        if log.matches(text).count() >= times {
            return Ok(());
        }
        if started.elapsed() > DEADLINE {
            bail!("the log contains `{text}` less than {times} times:\n{log}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn life(programs: &Programs) -> Result<()> {
    let _ = fs::remove_file(log_file(programs));
    remove_leftovers(programs)?;
    let printed = install(programs)?;
    ensure!(printed.contains(&format!("Start-Service {NAME}")), "{printed}");
    net(programs, "start")?;
    expect_in_log(programs, "resource devices updated", 1)?;
    expect_in_log(programs, "cannot listen on plugin socket", 1)?;
    let started = Instant::now();
    net(programs, "stop")?;
    println!("        the service stopped within {} ms", started.elapsed().as_millis());
    expect_in_log(programs, "shutting down signal=\"service stop\"", 1)?;
    net(programs, "start")?;
    expect_in_log(programs, "resource devices updated", 2)?;
    // Stops the service first.
    stdout(&mut programs.windows(&["service", "uninstall"]))?;
    expect_in_log(programs, "shutting down signal=\"service stop\"", 2)?;
    ensure!(net(programs, "start").is_err(), "the service can be started after its removal");
    let log = fs::read_to_string(log_file(programs))?;
    ensure!(!log.contains('\u{1b}'), "the log file contains escape sequences:\n{log}");
    Ok(())
}

fn errors(programs: &Programs) -> Result<()> {
    remove_leftovers(programs)?;
    let missing = ["service", "install", "--", "--config", r"C:\missing.yaml"];
    expect_error(programs, &missing, 2, "missing.yaml")?;
    expect_error(programs, &["service", "uninstall"], 1, "does not exist")?;
    expect_error(programs, &["service", "run"], 1, "not started by the Windows service manager")?;
    install(programs)?;
    expect_error(programs, &["service", "install"], 1, "already exists")?;
    stdout(&mut programs.windows(&["service", "uninstall"]))?;
    Ok(())
}

/// Runs a command that is to fail with `status` and an error that contains `text`, and a hint.
fn expect_error(programs: &Programs, arguments: &[&str], status: i32, text: &str) -> Result<()> {
    let result = output(&mut programs.windows(arguments))?;
    let error = String::from_utf8_lossy(&result.stderr);
    ensure!(
        result.status.code() == Some(status) && error.contains(text),
        "{arguments:?} exited with {}:\n{error}",
        result.status
    );
    ensure!(status == 2 || error.contains("hint: "), "no hint:\n{error}");
    Ok(())
}

/// Removes the service of an earlier run that failed. Wine keeps a removed service until the
/// delay of its start has passed.
fn remove_leftovers(programs: &Programs) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < LEFTOVER_DEADLINE {
        let result = output(&mut programs.windows(&["service", "uninstall"]))?;
        if String::from_utf8_lossy(&result.stderr).contains("does not exist") {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    bail!("cannot remove the service of an earlier run")
}
