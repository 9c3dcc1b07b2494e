//! Runs `gpu-probe` as users do.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod broken_driver;
mod licenses;
mod reference;
mod software;

use std::process::Command;

#[cfg(target_os = "linux")]
use serde_json::Value;

/// The output of one run.
struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Outcome {
    fn of(command: &mut Command) -> Outcome {
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
        let stdout = text(output.stdout);
        let stderr = text(output.stderr);
        Outcome { code: output.status.code(), stdout, stderr }
    }

    /// The document that `--output json` printed.
    #[cfg(target_os = "linux")]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {:?}\n{}{}", self.code, self.stdout, self.stderr)
    }
}

/// The program with a time limit that no busy machine exceeds, unless `arguments` have another one.
fn probe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-probe"));
    command.args(["--time-limit", "600"]).args(arguments).env_remove("DIRECTX_VISIBLE_DEVICES");
    command
}
