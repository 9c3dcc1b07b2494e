//! How a program ends when it does not succeed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::UnwindSafe;
use std::process::ExitCode;

/// The exit status of a failure at work.
const AT_WORK: u8 = 1;
/// The exit status of wrong usage or configuration; clap's own is the same.
const USAGE: u8 = 2;

/// Why a program failed, what may help, and with which status to exit.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// Wrong usage or configuration: nothing was started.
    pub fn usage(error: impl Into<anyhow::Error>) -> Failure {
        Failure { status: USAGE, error: error.into(), hint: None }
    }

    /// A failure at work.
    pub fn at_work(error: impl Into<anyhow::Error>) -> Failure {
        Failure { status: AT_WORK, error: error.into(), hint: None }
    }

    /// Adds advice, which is told apart from the error.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Adds advice where there is some.
    #[must_use]
    pub fn hint_if_any(self, hint: Option<String>) -> Failure {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
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

/// Runs a program: turns its outcome, or a panic, into an exit status and tells an
/// error on standard error.
pub fn run(program: impl FnOnce() -> Result<ExitCode, Failure> + UnwindSafe) -> ExitCode {
    match std::panic::catch_unwind(program) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => {
            // Where standard error is closed the exit status is left to speak.
            let _ = std::io::stderr().write_all(failure.text().as_bytes());
            ExitCode::from(failure.status)
        }
        // The panic's own message is on standard error already.
        Err(_) => ExitCode::from(AT_WORK),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn causes_and_advice_follow_the_error() {
        let failure = Failure::usage(anyhow!("cause").context("cannot do it")).hint("do this");
        assert_eq!(failure.text(), "error: cannot do it\n  caused by: cause\nhint: do this\n");
    }

    #[test]
    fn the_exit_status_tells_work_from_usage() {
        let status = |outcome| format!("{:?}", run(|| outcome));
        let code = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(status(Ok(ExitCode::from(7))), code(7));
        assert_eq!(status(Err(Failure::at_work(anyhow!("x")))), code(1));
        assert_eq!(status(Err(Failure::usage(anyhow!("x")))), code(2));
        assert_eq!(format!("{:?}", run(|| panic!("on purpose"))), code(1));
    }
}
