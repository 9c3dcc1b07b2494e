//! `gen-device-mounts --run`, with a front end that prints its arguments.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fixtures::inventory;
use crate::outcome::{GEN_DEVICE_MOUNTS, Outcome, TEST_DEVICE_DISCOVERY, program};

/// `gen-device-mounts` on a host with two GPUs; `PATH` contains only `folder`.
fn running(folder: &Path, arguments: &[&str]) -> Command {
    let host = inventory("aws-t4-two.yaml");
    let fixed = ["--index", "0", "--runtime-mounts", "never", "--run", "--inventory"];
    let all = [&fixed[..], &[host.to_str().unwrap()], arguments].concat();
    let mut command = program(GEN_DEVICE_MOUNTS, &all);
    command.env("PATH", folder);
    command
}

/// Another process writes the script: while this one has it open, a process that another test
/// starts may inherit it, and then it cannot be run (`ETXTBSY`).
fn with_program(name: &str, script: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut write = Command::new("sh");
    write.args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod +x "$0""#]);
    assert!(write.arg(folder.path().join(name)).arg(script).status().unwrap().success());
    folder
}

#[test]
fn the_front_end_gets_flags_and_container_arguments_and_its_exit_code_is_returned() {
    let folder = with_program("ctr", r#"for word in "$@"; do echo "[$word]"; done; exit 7"#);
    let container = ["--", "--cni", "image", "name", "cmd", "/c", "echo %PATH% & \"x\""];
    insta::assert_snapshot!("run", Outcome::of(&mut running(folder.path(), &container)));
}

#[test]
fn flags_after_the_image_belong_to_the_program_until_a_double_dash() {
    let folder = with_program("ctr", r#"echo "$@""#);
    let printed = |container: &[&str]| Outcome::of(&mut running(folder.path(), container)).stdout;
    let image_first = ["image", "--hints=false", "name", "--", "cmd", "--all", "--", "-x"];
    let flags = "run --rm --device vpci-location-path://PCIROOT(0)#PCI(1B00)";
    assert_eq!(printed(&image_first), format!("{flags} image name cmd --all -- -x\n"));
    // Both devices, since `--all` comes before the double dash.
    assert_eq!(printed(&["image", "name", "--all"]).matches("--device").count(), 2);
    let unknown = Outcome::of(&mut running(folder.path(), &["image", "name", "cmd", "--unknown"]));
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""), "{unknown}");
    assert!(unknown.stderr.contains("unexpected argument '--unknown' found"), "{unknown}");
    assert!(unknown.stderr.contains("'-- --unknown'"), "{unknown}");
}

#[test]
fn the_front_end_uses_the_terminal() {
    let folder = with_program("nerdctl", "read line; echo \"read $line\"; kill -9 $$");
    let mut command = running(folder.path(), &["--frontend", "nerdctl", "image"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a word\n").unwrap();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(output, "read a word\n");
    assert_eq!(child.wait().unwrap().code(), Some(128 + 9));
}

#[test]
fn a_missing_front_end_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(
        "run_not_installed",
        Outcome::of(&mut running(folder.path(), &["image", "name"]))
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let host = inventory("aws-t4-two.yaml");
    for (name, arguments) in [(TEST_DEVICE_DISCOVERY, vec![]), (GEN_DEVICE_MOUNTS, vec!["--all"])] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let arguments = [&arguments[..], &["--inventory", host.to_str().unwrap()]].concat();
        let mut command = program(name, &arguments);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let host = inventory("aws-t4-two.yaml");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = program(TEST_DEVICE_DISCOVERY, &["--inventory", host.to_str().unwrap()]);
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("error: cannot write to standard output"), "{stderr}");
}
