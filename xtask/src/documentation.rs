//! The documentation: its links and the commands that it prints.

use std::process::Command;

use anyhow::Result;

use crate::prerequisites::link_checker;
use crate::process::run;
use crate::workspace::{self, ignored_tests};

/// `lychee.toml` says which links are checked.
pub(crate) fn check() -> Result<()> {
    run(Command::new(link_checker()?).arg(".").current_dir(workspace::root()))?;
    workspace::build()?;
    run(&mut ignored_tests(&["--test", "documented_commands"]))
}
