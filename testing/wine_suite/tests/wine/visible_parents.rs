//! Child processes of filtered programs that other compilers made, and many of them; and what a
//! filtered process leaves open.

use std::fs;
use std::process::Command;

use super::output::{expect, output, stdout};
use super::paths::{copy, root, tool, windows_path};
use super::visible::{FILTERED, HIDDEN, LISTS, Launcher, bed};

/// A program that Microsoft's compiler built.
const NINJA: &str = "ninja-1.13.2/ninja-1.13.2.data/scripts/ninja.exe";

#[test]
#[ignore = "needs Wine and Go: cargo xtask test wine"]
fn a_child_of_a_program_built_by_go_with_an_empty_environment() {
    let launcher = Launcher::new();
    let parent = launcher.folder.join("parent.exe");
    let mut go = Command::new("go");
    go.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0");
    go.args(["build", "-o"]).arg(&parent);
    stdout(go.arg(root().join("testing/wine_bed/parents/parent.go")));
    expect(&launcher.run(&[&windows_path(&parent)], &LISTS), 0, FILTERED, &[]);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_child_of_a_program_built_by_microsofts_compiler() {
    let launcher = Launcher::new();
    let ninja = windows_path(&copy(&tool(NINJA), &launcher.folder));
    let rule = format!("rule list\n  command = {} {}\n", bed(), LISTS.join(" "));
    let build = launcher.folder.join("build.ninja");
    fs::write(&build, rule + "build lists: list\n").unwrap();
    let mut command = launcher.command(&["--", &ninja, "--quiet", "-f", &windows_path(&build)]);
    expect(&output(command.current_dir(&launcher.folder)), 0, FILTERED, &[]);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn two_hundred_children_leave_no_handles() {
    let bed = bed();
    let words = ["--", &*bed, "children", "200", &bed, "exit", "0"];
    expect(&Launcher::new().output(&words), 0, "gained 0 handles\n", &[]);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn no_handle_of_a_hidden_adapter_stays_open() {
    let launcher = Launcher::new();
    let words = ["open-adapters", HIDDEN];
    let all = stdout(launcher.host.command(bed()).args(words));
    assert_eq!(all, "70 handles returned, 70 open\n");
    expect(&launcher.run(&[], &words), 0, "20 handles returned, 20 open\n", &[]);
}
