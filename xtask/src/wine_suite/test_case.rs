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
    /// 32-bit programs.
    Programs32,
}

impl Needs {
    /// Why tests that need it do not run where Wine lacks it; `None` for tests that always run.
    pub(super) fn lacking(self) -> Option<&'static str> {
        match self {
            Needs::Nothing => None,
            Needs::Sockets => Some("this Wine has no AF_UNIX sockets (error 10047)"),
            Needs::Programs32 => Some("this Wine runs no 32-bit programs"),
        }
    }
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

    /// The same test, for a Wine that runs 32-bit programs.
    pub(super) fn needs_32_bit(self) -> TestCase {
        TestCase { needs: Needs::Programs32, ..self }
    }
}
