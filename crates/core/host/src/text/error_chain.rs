//! An error with its causes in one line.

use std::error::Error;

/// The text of `error`, then the text of each cause, separated by colons. An error's own
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

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Caused(&'static str, #[source] Option<Box<Caused>>);

    #[test]
    fn every_cause_follows_its_error() {
        let b = Caused("b", Some(Caused("c", None).into()));
        assert_eq!(error_chain(&Caused("a", Some(b.into()))), "a: b: c");
    }
}
