//! The program on a system without DirectX. The Wine suite runs it on Windows.

#![cfg(not(windows))]

use std::process::Command;

#[test]
fn other_systems_get_an_error() {
    for arguments in [&["--", "a"][..], &["--require", "--", "a"], &["--check"]] {
        let program = env!("CARGO_BIN_EXE_directx-visible");
        let output = Command::new(program).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with("error: this program runs only on Windows\nhint: "), "{error}");
    }
}
