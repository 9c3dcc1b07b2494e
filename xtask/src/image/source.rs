//! Which source an image is built from: its version, its commit and its date.

use std::process::Command;

use anyhow::Result;

use super::source_date::SourceDate;
use crate::{process, workspace};

/// Where the source is published.
pub(super) const REPOSITORY: &str =
    "https://github.com/directx-device-plugin/directx-device-plugin";

/// The state of the source.
pub(super) struct Source {
    /// The version of the programs.
    pub(super) version: &'static str,
    /// The commit; `None` outside a git repository.
    pub(super) commit: Option<String>,
    pub(super) tree: Tree,
    pub(super) date: SourceDate,
}

/// Whether the files are those of the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    Clean,
    Modified,
}

impl Source {
    /// The source in the workspace.
    pub(super) fn read() -> Result<Source> {
        let commit = git(&["rev-parse", "HEAD"]);
        let time = git(&["log", "-1", "--format=%ct"]).and_then(|text| text.parse().ok());
        let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
        let is_modified = changes.is_some_and(|changes| !changes.is_empty());
        let variable = std::env::var("SOURCE_DATE_EPOCH").ok();
        Ok(Source {
            // All packages have the workspace's version, this one too.
            version: env!("CARGO_PKG_VERSION"),
            commit,
            tree: if is_modified { Tree::Modified } else { Tree::Clean },
            date: SourceDate::new(variable.as_deref(), time)?,
        })
    }

    /// The commit, with a suffix if the files differ from it.
    pub(super) fn revision(&self) -> Option<String> {
        let commit = self.commit.as_ref()?;
        Some(match self.tree {
            Tree::Clean => commit.clone(),
            Tree::Modified => format!("{commit}-modified"),
        })
    }
}

/// What git prints; `None` if it is not installed or the workspace is no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.current_dir(workspace::root()).args(arguments);
    process::stdout(&mut git).map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_tells_a_modified_tree() {
        let revision = |tree| {
            let date = SourceDate::new(None, None).unwrap();
            let commit = Some("abc".to_owned());
            Source { version: "1", commit, tree, date }.revision().unwrap()
        };
        assert_eq!(revision(Tree::Clean), "abc");
        assert_eq!(revision(Tree::Modified), "abc-modified");
    }
}
