//! One test of the suite.

use anyhow::Result;

use super::programs::Programs;

/// A name and a function that fails if the test does.
pub(super) struct TestCase {
    pub(super) name: String,
    pub(super) run: Run,
}

type Run = Box<dyn Fn(&Programs) -> Result<()>>;

impl TestCase {
    pub(super) fn new(
        name: impl Into<String>,
        run: impl Fn(&Programs) -> Result<()> + 'static,
    ) -> TestCase {
        TestCase { name: name.into(), run: Box::new(run) }
    }
}
