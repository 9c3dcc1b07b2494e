//! `cargo xtask update`: the tests write what they otherwise compare.

use std::ffi::OsString;

use anyhow::Result;

use crate::manifests;
use crate::process::{run, stage};
use crate::workspace::cargo;

/// The arguments of `cargo xtask update`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write the manifests in deploy as the Helm chart renders them
    #[arg(long, exclusive = true)]
    manifests: bool,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// Runs the tests that need only Rust, or those that the arguments of `cargo test` select.
pub(crate) fn command(options: &Options) -> Result<()> {
    if options.manifests {
        return manifests::update();
    }
    let arguments = &options.arguments;
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
