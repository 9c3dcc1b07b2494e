//! The daemon as a service of Wine's service manager.
//!
//! Windows services have none of the variables that make the `dxcore.dll` of the bed present an
//! inventory, so the service itself gets one.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::host::Host;
use super::output::{output, stdout, text};
use super::paths::{fixture, windows_path};

const NAME: &str = "directx-device-plugin";

/// The limit for hangs: longer than the service takes for a step on a slow machine, and longer than
/// the two minutes of a delayed start.
const LIMIT: Duration = Duration::from_mins(5);

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn install_start_stop_uninstall() {
    let host = Host::take();
    let _ = fs::remove_file(log_file(&host));
    remove_leftovers(&host);
    let missing = ["service", "install", "--force", "--", "--config", r"C:\missing.yaml"];
    expect_error(&host, &missing, 2, "missing.yaml");
    expect_error(&host, &["service", "uninstall"], 1, "does not exist");
    expect_error(&host, &["service", "run"], 1, "not started by the Windows service manager");

    let inventory = windows_path(&fixture("aws-t4-two"));
    let serve = ["--", "--driver-model", "wddm", "--inventory", &inventory];
    // The programs of the tests belong to the account that built them.
    let refused = [&["service", "install"][..], &serve].concat();
    expect_error(&host, &refused, 1, "directx-device-plugin.exe` would let others act as SYSTEM");
    let options = [&["service", "install", "--force"][..], &serve].concat();
    let printed = stdout(&mut host.plugin(&options));
    assert!(printed.contains(&format!("Start-Service {NAME}")), "{printed}");
    expect_error(&host, &["service", "install", "--force"], 1, "already exists");
    net(&host, "start");
    expect_in_log(&host, "resource devices updated", 1);
    expect_in_log(&host, "cannot listen on plugin socket", 1);
    net(&host, "stop");
    expect_in_log(&host, "shutting down signal=\"service stop\"", 1);
    net(&host, "start");
    expect_in_log(&host, "resource devices updated", 2);
    // Uninstalling stops the service first.
    stdout(&mut host.plugin(&["service", "uninstall"]));
    expect_in_log(&host, "shutting down signal=\"service stop\"", 2);
    let start = output(host.command("net.exe").args(["start", NAME]));
    assert!(!start.status.success(), "the service can be started after its removal");
    let log = fs::read_to_string(log_file(&host)).unwrap();
    assert!(!log.contains('\u{1b}'), "the log file contains escape sequences:\n{log}");
}

/// Windows' own program for services.
fn net(host: &Host, verb: &str) {
    stdout(host.command("net.exe").args([verb, NAME]));
}

fn log_file(host: &Host) -> PathBuf {
    // Wine's prefix spells the folder in small letters.
    host.drive_c().join("windows/logs/directx-device-plugin.log")
}

/// Waits until the log contains `text` at least this many times.
#[track_caller]
fn expect_in_log(host: &Host, text: &str, times: usize) {
    let started = Instant::now();
    loop {
        let log = fs::read_to_string(log_file(host)).unwrap_or_default();
        if log.matches(text).count() >= times {
            return;
        }
        assert!(started.elapsed() < LIMIT, "`{text}` is not there {times} times:\n{log}");
        sleep(Duration::from_millis(100));
    }
}

/// Runs a command that is to fail with `status` and an error that contains `text`, and a hint.
#[track_caller]
fn expect_error(host: &Host, arguments: &[&str], status: i32, message: &str) {
    let result = output(&mut host.plugin(arguments));
    let error = text(&result.stderr);
    assert_eq!(result.status.code(), Some(status), "{error}");
    assert!(error.contains(message) && (status == 2 || error.contains("hint: ")), "{error}");
}

/// Removes the service of an earlier run that failed. Wine keeps a removed service until the delay
/// of its start has passed.
fn remove_leftovers(host: &Host) {
    let started = Instant::now();
    loop {
        let result = output(&mut host.plugin(&["service", "uninstall"]));
        if text(&result.stderr).contains("does not exist") {
            return;
        }
        assert!(started.elapsed() < LIMIT, "cannot remove the service of an earlier run");
        sleep(Duration::from_millis(500));
    }
}
