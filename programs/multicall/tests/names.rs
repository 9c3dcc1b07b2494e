//! The file under every name that it is shipped as.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const FILE: &str = env!("CARGO_BIN_EXE_directx-programs");

#[allow(clippy::unwrap_used, reason = "part of the tests")]
fn run(path: &Path, argument: &str) -> Output {
    Command::new(path).arg(argument).output().unwrap()
}

/// What `NAME --help` prints for a link with this name.
#[allow(clippy::unwrap_used, reason = "part of the tests")]
fn help(name: &str) -> String {
    // A copy could not be run while a process that another test starts has it open for writing.
    let folder = tempfile::tempdir_in(Path::new(FILE).parent().unwrap()).unwrap();
    let path = folder.path().join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    fs::hard_link(FILE, &path).unwrap();
    let output = run(&path, "--help");
    assert!(output.status.success(), "{name}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_name_runs_its_program() {
    for name in [
        "directx-device-plugin",
        "device-plugin-wddm",
        "device-plugin-mcdm",
        "directx-feature-discovery",
        "gen-device-mounts",
        "query-hcs-capabilities",
        "test-device-discovery",
    ] {
        let usage = format!("Usage: {name}");
        let found = help(name);
        let line = found.lines().find(|line| line.starts_with("Usage: ")).unwrap();
        let command = line.split(' ').nth(1).unwrap().trim_end_matches(".exe");
        assert_eq!(format!("Usage: {command}"), usage, "{found}");
    }
}

#[test]
fn the_clients_in_other_languages_print_what_the_program_prints() {
    for name in ["test-device-discovery-cpp", "test-device-discovery-go"] {
        let expected = help("test-device-discovery");
        assert_eq!(help(name).replace(name, "test-device-discovery"), expected);
    }
}

#[test]
fn the_own_name_is_none_of_them() {
    let output = run(Path::new(FILE), "--help");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("error: no program is called `"), "{error}");
    let hint = "\nhint: run this file under one of the names directx-device-plugin, ";
    assert!(error.contains(hint), "{error}");
}
