//! The program, run as users run it.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod destinations;
#[cfg(unix)]
mod printed;
mod reference;

use std::process::{Command, Stdio};

/// A command of the program without any configuration in its environment.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_directx-feature-discovery"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.contains("DEVICE_PLUGIN") || name.starts_with("DIRECTX") {
            command.env_remove(name);
        }
    }
    for name in ["NODE_NAME", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Exit status, standard output and standard error of the program with these arguments.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = program().args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}
