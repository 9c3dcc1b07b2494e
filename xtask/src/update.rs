//! `cargo xtask update`: the tests write what they otherwise compare.

use std::ffi::OsString;

use anyhow::Result;

use crate::process::{run, stage};
use crate::workspace::cargo;

/// Runs the tests that need only Rust, or those that `arguments` of `cargo test` select.
pub(crate) fn command(arguments: &[OsString]) -> Result<()> {
    let mut test = cargo();
    test.args(["test", "--quiet", "--no-fail-fast"]);
    // `INSTA_UPDATE` is for the snapshots, the other variable for `testing/doc_pages`.
    test.env("INSTA_UPDATE", "always").env("UPDATE_REFERENCE", "1");
    if arguments.is_empty() {
        test.arg("--workspace")
    } else {
        test.args(arguments)
    };
    run(&mut test)?;
    stage("read the changes with `git diff`");
    Ok(())
}
