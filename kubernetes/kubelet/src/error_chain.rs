//! Formats an error and all its causes on one line, for logs and for the status. The `Display`
//! text of an error leaves out its cause.

use std::error::Error;
use std::fmt;

/// Displays an error, its cause, the cause of that and so on, separated by colons.
pub(crate) struct ErrorChain<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
