//! An error with its causes in one line.

use std::error::Error;

/// The text of `error`, then that of each cause, separated by colons. An error's own
/// text leaves its cause out.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_follows_its_error() {
        let error = anyhow::anyhow!("c").context("b").context("a");
        assert_eq!(error_chain(error.as_ref()), "a: b: c");
    }
}
