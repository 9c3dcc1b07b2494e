//! Files that cannot be written, and pipes in place of files.

use std::process::Command;

use crate::harness::{outcome, program, recorded};

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
    let run = |arguments: &[&str]| outcome(&program().args(arguments).output().unwrap());
    let (status, to_pipe, err) = run(&["record", "--inventory", &t4, "--output", "/dev/stdout"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let (_, printed, _) = run(&["record", "--inventory", &t4]);
    assert_eq!(to_pipe, printed);
}
