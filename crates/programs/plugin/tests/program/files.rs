//! Files that are not what they should be, read and written by the real program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{outcome, program, recorded};

/// Far more than a command takes; a command that waits for a FIFO never ends.
const LIMIT: Duration = Duration::from_mins(2);

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs a command, which must end by itself.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = program();
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    outcome(&child.wait_with_output().unwrap())
}

#[test]
fn no_command_waits_for_a_fifo() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    fifo(&path);
    let pipe = path.to_str().unwrap();
    let t4 = recorded("aws-t4-two.yaml").display().to_string();
    for arguments in [
        &["devices", "--inventory", pipe][..],
        &["record", "--inventory", pipe],
        &["doctor", "--inventory", pipe],
        &["simulate", "--inventory", pipe],
        &["simulate", "--inventory", &t4, "--config", pipe],
        &["serve", "--inventory", pipe],
        &["serve", "--inventory", &t4, "--config", pipe],
    ] {
        let (status, _, err) = run(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {err}");
        assert!(err.contains(pipe) && err.contains("it is not a regular file"), "{err}");
        assert!(err.contains("hint: copy what it holds into a regular file"), "{err}");
    }
    let (_, report, err) = run(&["doctor", "--inventory", &t4, "--config", pipe]);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("cannot read the configuration file"), "{report}{err}");
    assert!(report.contains("it is not a regular file"), "{report}{err}");
}

/// The shell's limit of a file's size stands for a full disk.
#[test]
fn a_record_that_cannot_be_written_is_an_error_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.yaml");
    let t4 = recorded("azure-m60.yaml");
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "trap '' XFSZ; ulimit -f 1; exec \"$0\" record --inventory \"$1\" --output \"$2\"",
    ]);
    shell.arg(program().get_program()).arg(t4).arg(&file);
    let (status, _, err) = outcome(&shell.output().unwrap());
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("cannot write") && err.contains("hint:"), "{err}");
}

#[test]
fn a_record_can_be_written_to_a_pipe() {
    let t4 = recorded("aws-t4-two.yaml").display().to_string();
    let (status, to_pipe, err) = run(&["record", "--inventory", &t4, "--output", "/dev/stdout"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let (_, printed, _) = run(&["record", "--inventory", &t4]);
    assert_eq!(to_pipe, printed);
}
