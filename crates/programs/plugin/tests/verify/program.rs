//! Runs the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) const TWO_T4: &str = "aws-t4-two.yaml";

/// The program, without any configuration in its environment.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_directx-device-plugin"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.contains("DEVICE_PLUGIN") || text.starts_with("DIRECTX") {
            command.env_remove(&name);
        }
    }
    // The times in the report have different lengths, so no line is broken.
    command.env_remove("PLUGIN_SOCK_DIR").env("COLUMNS", "1000").stdin(Stdio::null());
    command
}

/// `verify` with these arguments.
pub(crate) fn verify(arguments: &[&str]) -> Command {
    let mut command = program();
    command.arg("verify").args(arguments);
    command
}

pub(crate) fn inventories() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories")
}

/// The path of a recorded host of the repository.
pub(crate) fn recorded(name: &str) -> String {
    inventories().join(name).display().to_string()
}

/// Exit status, standard output and standard error.
pub(crate) fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The JSON report, and the exit status.
pub(crate) fn report(command: &mut Command) -> (Option<i32>, Value) {
    let (status, out, err) = outcome(&command.args(["--output", "json"]).output().unwrap());
    (status, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")))
}

/// The findings of a step.
pub(crate) fn steps<'a>(report: &'a Value, step: &str) -> Vec<&'a Value> {
    report["steps"].as_array().unwrap().iter().filter(|found| found["step"] == step).collect()
}

/// The only finding of a step.
pub(crate) fn step<'a>(report: &'a Value, step: &str) -> &'a Value {
    let found = steps(report, step);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}
