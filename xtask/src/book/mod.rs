//! The documentation: the links of every Markdown file, and the book made from `docs`.
//!
//! The links are checked first, by this crate, in every Markdown file of the workspace.
//! Then mdBook builds `docs` into the target folder. The version of mdBook is fixed, and
//! it is built once per machine.

mod links;
mod markdown;
mod summary;

use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::process::{last_lines, line, output_within, run_logged};
use crate::workspace::{self, cargo};

/// The version of mdBook that builds the book.
const VERSION: &str = "0.5.4";

/// How long one build of the book may take. It takes less than a second.
const BUILD_LIMIT: Duration = Duration::from_secs(60);

/// Checks the links and the table of contents, then builds the book.
pub(crate) fn check() -> Result<()> {
    let root = workspace::root();
    let files = links::markdown_files(&root)?;
    let count = links::check(&root, &files)?;
    println!("{count} links in {} files", files.len());
    summary::check(&root, &files)?;
    build()
}

/// Builds the book into the target folder. A warning of mdBook is an error.
fn build() -> Result<()> {
    let output = workspace::target_dir().join("book");
    let mut command = Command::new(installed()?);
    command.current_dir(workspace::root()).args(["build", links::BOOK, "--dest-dir"]).arg(&output);
    let result = output_within(BUILD_LIMIT, &mut command)?;
    let log = String::from_utf8_lossy(&result.stderr);
    if !result.status.success() || has_warning(&log) {
        let log = last_lines(&result.stderr, 30);
        bail!("{} failed or printed a warning ({})\n{log}", line(&command), result.status);
    }
    println!("built {}", output.join("index.html").display());
    Ok(())
}

/// Whether the log of mdBook contains a warning or an error. Each line starts with its
/// level.
fn has_warning(log: &str) -> bool {
    log.lines().any(|line| matches!(line.split_whitespace().next(), Some("WARN" | "ERROR")))
}

/// `mdbook`, installed in the user's cache if it is not there. Without its default
/// features, which serve and search the book.
fn installed() -> Result<PathBuf> {
    let cache = Cache::open()?;
    let name = "mdbook";
    let folder = cache.entry(name, &[VERSION], |folder| {
        eprintln!("installing mdBook {VERSION} (once per machine; some minutes)");
        let build = folder.join("build");
        let mut install = cargo();
        install
            .args(["install", "--quiet", "--locked", "--debug", "--no-default-features", "--root"])
            .arg(folder)
            .arg(format!("mdbook@{VERSION}"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_TARGET_DIR", &build);
        run_logged(&mut install, &cache.log(name)?)?;
        // Some hundred MiB of build output.
        std::fs::remove_dir_all(build).context("cannot remove the build of mdBook")
    })?;
    Ok(folder.join("bin").join(format!("mdbook{EXE_SUFFIX}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_mdbook_are_recognized() {
        assert!(has_warning("INFO start\n WARN unclosed HTML tag `<b>`\n"));
        assert!(has_warning("ERROR no file\n"));
        assert!(!has_warning(" INFO Book building has started\n INFO the page WARN\n"));
    }
}
