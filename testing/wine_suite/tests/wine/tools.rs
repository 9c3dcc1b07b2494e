//! The tools under Wine, and how every program prints and exits there.

use std::fs;

use super::clients::{GO_CLIENT, windows_clients};
use super::compare::compare;
use super::host::Host;
use super::output::{native, output, stdout, text};
use super::paths::{copy, fixture, inventories, windows_build, windows_path};

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn tools_print_the_same_on_a_host_and_for_its_inventory() {
    let host = Host::take();
    for inventory in inventories("fixtures/inventories") {
        host.set(&inventory);
        for (tool, arguments) in [
            ("query-hcs-capabilities", &[][..]),
            ("query-hcs-capabilities", &["--output", "json"]),
            ("gen-device-mounts", &["--all", "--frontend", "crictl"]),
        ] {
            let expected = stdout(&mut native(tool, arguments, &inventory));
            let mut windows = host.command(windows_build(&format!("{tool}.exe")));
            let found = stdout(windows.args(arguments));
            compare(&format!("{tool} of {}", inventory.display()), &expected, &found);
        }
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn no_compute_service() {
    let host = Host::take();
    host.install(&["dxcore.dll"]);
    let result = output(&mut host.command(windows_build("query-hcs-capabilities.exe")));
    let error = text(&result.stderr);
    assert_eq!(result.status.code(), Some(1), "{error}");
    assert!(error.starts_with("error: this host has no Host Compute Service"), "{error}");
}

/// Flags that `gen-device-mounts` prints reach a program unchanged through `cmd.exe`. The program
/// is `gen-device-mounts` itself, which prints all words that it passes on.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn cmd_passes_printed_flags_unchanged() {
    let host = Host::of(&fixture("aws-t4-two"));
    let tool = windows_build("gen-device-mounts.exe");
    let flags = stdout(host.command(&tool).arg("--all"));
    let flags = flags.trim_end();
    let tool = windows_path(&tool);
    let line = format!("@\"{tool}\" --index 0 --runtime-mounts never --run -- {flags}\r\n");
    let batch = windows_path(&host.write("flags.bat", line));
    let result = output(host.command("cmd.exe").args(["/c", &batch]));
    let error = text(&result.stderr);
    assert!(error.lines().any(|line| line.trim_end().ends_with(flags)), "{error}");
    assert!(error.contains("cannot run `ctr`"), "{error}");
}

/// `--run` finds a container client in its own folder, passes the arguments on and returns the exit
/// code. The Go client stands in for `ctr`: it rejects `run` and exits 2.
#[test]
#[ignore = "needs Wine and Go: cargo xtask test wine"]
fn run_returns_the_exit_code_of_its_program() {
    let host = Host::of(&fixture("aws-t4-two"));
    let folder = windows_clients(&host);
    let tool = copy(&windows_build("gen-device-mounts.exe"), &folder);
    fs::copy(folder.join(GO_CLIENT), folder.join("ctr.exe")).unwrap();
    let result = output(host.command(&tool).args(["--all", "--run", "image", "name"]));
    let error = text(&result.stderr);
    assert_eq!(result.status.code(), Some(2), "{error}");
    assert!(error.starts_with("ctr \"run\" \"--rm\" \"--device\""), "{error}");
    assert!(error.contains("unexpected argument `run`"), "{error}");
}

/// Wine loses the status of a process if one of its threads ends at the same moment. Without
/// waiting for the thread that reads the file and the thread that prints the error, this happened
/// in every eighth run.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_program_that_prints_an_error_exits_with_its_status_each_time() {
    let host = Host::take();
    for run in 1..=25 {
        let result = output(&mut host.plugin(&["devices", "--inventory", "missing.yaml"]));
        assert_eq!(result.status.code(), Some(2), "run {run}");
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn redirected_output_has_no_colors() {
    let host = Host::take();
    for arguments in [
        &["--help"][..],
        &["serve", "--nonsense"],
        &["doctor"],
        &["simulate", "--log-level", "trace"],
    ] {
        // With this variable, programs of other systems would assume a terminal with colors.
        let result = output(host.plugin(arguments).env("TERM", "xterm-256color"));
        let text = text(&[result.stdout, result.stderr].concat());
        assert!(!text.is_empty() && !text.contains('\x1b'), "{arguments:?} printed:\n{text}");
    }
}
