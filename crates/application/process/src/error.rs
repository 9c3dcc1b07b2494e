//! Why a program cannot begin its work.

use std::io;
use std::path::PathBuf;

use command_line::Failure;

/// Why a program cannot begin its work.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The log file cannot be opened.
    #[error("cannot open the log file `{}`", path.display())]
    LogFile {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system refuses a thread, an event loop or a signal handler.
    #[error("cannot {what}")]
    System {
        /// What the program wanted to do.
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ProcessError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ProcessError::LogFile { .. } => {
                Some("use the path of a file that this user may create, with `--log-file`")
            }
            ProcessError::System { .. } => None,
        }
    }

    /// Whether the program needs other options.
    #[must_use]
    pub fn is_wrong_usage(&self) -> bool {
        matches!(self, ProcessError::LogFile { .. })
    }
}

/// How a program ends that cannot go on.
impl From<ProcessError> for Failure {
    fn from(error: ProcessError) -> Failure {
        let hint = error.hint().map(str::to_owned);
        let is_usage = error.is_wrong_usage();
        Failure::of(error, is_usage, hint)
    }
}
