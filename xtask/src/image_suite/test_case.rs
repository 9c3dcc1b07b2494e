//! A test of the suite, and what all tests share.

use anyhow::Result;

use super::build::Builds;
use super::tools::Tools;

/// What the tests share.
pub(super) struct Context {
    pub(super) tools: Tools,
    pub(super) builds: Builds,
}

/// One test.
pub(super) struct TestCase {
    pub(super) name: &'static str,
    pub(super) run: fn(&Context) -> Result<()>,
}
