//! One test of the suite.

use anyhow::Result;

use super::programs::Programs;

/// A name and a function that fails if the test does.
pub(super) struct TestCase {
    pub(super) name: String,
    pub(super) run: Run,
    pub(super) needs: Needs,
}

/// What a test needs of Wine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    /// `AF_UNIX` sockets.
    Sockets,
}

type Run = Box<dyn Fn(&Programs) -> Result<()>>;

impl TestCase {
    pub(super) fn new(
        name: impl Into<String>,
        run: impl Fn(&Programs) -> Result<()> + 'static,
    ) -> TestCase {
        TestCase { name: name.into(), run: Box::new(run), needs: Needs::Nothing }
    }

    /// The same test, for a Wine with `AF_UNIX` sockets.
    pub(super) fn needs_sockets(self) -> TestCase {
        TestCase { needs: Needs::Sockets, ..self }
    }
}
