//! Runs a program and collects its output and exit status.

use std::fmt;
use std::process::{Command, Output, Stdio};

pub(crate) const GEN_DEVICE_MOUNTS: &str = env!("CARGO_BIN_EXE_gen-device-mounts");
pub(crate) const QUERY_HCS_CAPABILITIES: &str = env!("CARGO_BIN_EXE_query-hcs-capabilities");
pub(crate) const TEST_DEVICE_DISCOVERY: &str = env!("CARGO_BIN_EXE_test-device-discovery");

/// A program with its arguments, and no terminal.
pub(crate) fn program(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// What a program did.
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn of(command: &mut Command) -> Outcome {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
        Outcome { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { code, stdout, stderr } = self;
        write!(f, "exit code {code:?}\n----- stdout\n{stdout}----- stderr\n{stderr}")
    }
}
