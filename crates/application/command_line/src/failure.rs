//! Failures: how a program reports an error and which status it exits with.

use std::fmt::Write as _;
use std::panic::UnwindSafe;
use std::process::ExitCode;

use config::ConfigError;
use host::error_chain;
use host::printable::printable_lines;

use crate::stderr;

/// The exit status of a runtime failure.
const RUNTIME: u8 = 1;
/// The exit status of wrong usage or configuration; clap uses the same.
const USAGE: u8 = 2;

/// Why a program failed, an optional hint, and the exit status.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// Wrong usage or configuration; the program did not start its work.
    pub fn usage(error: impl Into<anyhow::Error>) -> Failure {
        Failure { status: USAGE, error: error.into(), hint: None }
    }

    /// A failure while the program runs.
    pub fn runtime(error: impl Into<anyhow::Error>) -> Failure {
        Failure { status: RUNTIME, error: error.into(), hint: None }
    }

    /// The failure of a library's error: wrong usage or not, and with the error's hint if it has one.
    pub fn of(error: impl Into<anyhow::Error>, is_usage: bool, hint: Option<String>) -> Failure {
        let status = if is_usage { USAGE } else { RUNTIME };
        Failure { status, error: error.into(), hint }
    }

    /// Adds a hint, which is printed on its own line after the error.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint if there is one.
    #[must_use]
    pub fn hint_if_any(self, hint: Option<String>) -> Failure {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The error with its causes in one line, for a log.
    #[must_use]
    pub fn chain(&self) -> String {
        error_chain(self.error.as_ref())
    }

    /// The hint, if there is one.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    fn text(&self) -> String {
        let mut text = format!("error: {}\n", self.error);
        for cause in self.error.chain().skip(1) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  caused by: {cause}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "hint: {hint}");
        }
        text
    }
}

/// An invalid configuration is wrong usage.
impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        let hint = error.hint().map(str::to_owned);
        Failure::of(error, true, hint)
    }
}

/// Runs a program: turns its result, or a panic, into an exit status and prints errors to
/// standard error.
pub fn run(program: impl FnOnce() -> Result<ExitCode, Failure> + UnwindSafe) -> ExitCode {
    match std::panic::catch_unwind(program) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => {
            stderr::print(&printable_lines(&failure.text()));
            ExitCode::from(failure.status)
        }
        // The panic hook has already printed or logged a message.
        Err(_) => ExitCode::from(RUNTIME),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn causes_and_hint_follow_the_error() {
        let failure = Failure::usage(anyhow!("cause").context("cannot do it")).hint("do this");
        assert_eq!(failure.text(), "error: cannot do it\n  caused by: cause\nhint: do this\n");
    }

    /// `run` would print the failures. The tests of each program show that it exits with these.
    #[test]
    fn the_exit_status_distinguishes_runtime_and_usage_failures() {
        assert_eq!(Failure::runtime(anyhow!("x")).status, 1);
        assert_eq!(Failure::usage(anyhow!("x")).status, 2);
        let code = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(format!("{:?}", run(|| Ok(ExitCode::from(7)))), code(7));
        assert_eq!(format!("{:?}", run(|| panic!("on purpose"))), code(1));
    }
}
