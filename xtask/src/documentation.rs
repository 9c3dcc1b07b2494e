//! The documentation: its website, its links and the commands that it prints. Workflows and scripts, too.

use std::env;
use std::process::Command;

use anyhow::{Context, Result};

use crate::book;
use crate::prerequisites::checkers;
use crate::process::{run, stdout};
use crate::workspace::{self, ignored_tests};

/// `lychee.toml` says which links are checked, and `zizmor.yml` gives exceptions.
pub(crate) fn check() -> Result<()> {
    let root = workspace::root();
    let folder = checkers()?;
    let lychee = || {
        let mut lychee = Command::new(folder.join("lychee"));
        lychee.current_dir(&root);
        lychee
    };
    run(lychee().arg("."))?;
    // git ignores the website, which lychee would skip for that.
    run(lychee().arg("--no-ignore").arg(book::build()?))?;
    // actionlint calls shellcheck.
    let mut path = folder.clone().into_os_string();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    run(Command::new(folder.join("actionlint")).current_dir(&root).env("PATH", path))?;
    let mut zizmor = Command::new(folder.join("zizmor"));
    run(zizmor.current_dir(&root).args(["--quiet", "--offline", "--no-progress", ".github"]))?;
    let list = ["grep", "--files-with-matches", "-E", "^#!/(usr/bin/env |bin/)(ba)?sh"];
    let scripts = stdout(workspace::git().args(list)).context("`git grep` failed")?;
    let mut shellcheck = Command::new(folder.join("shellcheck"));
    run(shellcheck.current_dir(&root).arg("--severity=warning").args(scripts.lines()))?;
    workspace::build()?;
    run(&mut ignored_tests(&["--test", "documented_commands"]))
}
