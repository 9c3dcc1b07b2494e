//! Child processes of filtered programs that other compilers made, and many of them; and what a
//! filtered process leaves open.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::output::{expect, output, stdout};
use super::paths::{copy, root, target, windows_path};
use super::visible::{FILTERED, HIDDEN, LISTS, Launcher, bed};

/// A program that Microsoft's compiler built, from the Python Package Index, and the SHA-256 digest
/// of its package.
const NINJA: &str = "ninja==1.13.2";
const NINJA_DIGEST: &str = "1293f4078278b70d0ee4b6cc8f3a9e030656c9b2f59909970343c4fe76070118";

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
#[ignore = "needs Wine and pip: cargo xtask test wine"]
fn a_child_of_a_program_built_by_microsofts_compiler() {
    let launcher = Launcher::new();
    let ninja = windows_path(&copy(&ninja(), &launcher.folder));
    let rule = format!("rule list\n  command = {} {}\n", bed(), LISTS.join(" "));
    let build = launcher.folder.join("build.ninja");
    fs::write(&build, rule + "build lists: list\n").unwrap();
    let mut command = launcher.command(&["--", &ninja, "--quiet", "-f", &windows_path(&build)]);
    expect(&output(command.current_dir(&launcher.folder)), 0, FILTERED, &[]);
}

/// Downloads the program, once.
fn ninja() -> PathBuf {
    let folder = target().join("wine/ninja");
    let program = folder.join("ninja-1.13.2.data/scripts/ninja.exe");
    if !program.exists() {
        fs::create_dir_all(&folder).unwrap();
        let list = folder.join("requirements.txt");
        fs::write(&list, format!("{NINJA} --hash=sha256:{NINJA_DIGEST}\n")).unwrap();
        let mut pip = Command::new("pip3");
        pip.args(["download", "--no-deps", "--require-hashes", "--only-binary=:all:"]);
        pip.args(["--platform", "win_amd64", "--dest"]).arg(&folder).arg("--requirement").arg(list);
        stdout(&mut pip);
        let mut unpack = Command::new("python3");
        unpack.args(["-m", "zipfile", "--extract"]);
        stdout(unpack.arg(folder.join("ninja-1.13.2-py3-none-win_amd64.whl")).arg(&folder));
    }
    program
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
