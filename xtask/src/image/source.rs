//! The source that an image is built from.

use std::env;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use crate::workspace::VERSION;
use crate::{process, workspace};

/// The registry in the manifests, the chart and the names of images until they are published.
/// Nobody can own it (RFC 2606).
pub(crate) const NO_REGISTRY: &str = "registry.example.com";

pub(crate) struct Source {
    /// The version of the programs, which names the commit in a build of the main branch.
    pub(crate) version: String,
    /// The commit, with `-modified` if files differ from it.
    pub(super) revision: String,
    /// The time of everything in the image, in seconds since 1970: `SOURCE_DATE_EPOCH`
    /// (<https://reproducible-builds.org/specs/source-date-epoch>), otherwise that of the commit.
    pub(crate) seconds: u64,
    /// `OWNER/REPOSITORY` on GitHub, if it is known.
    pub(crate) repository: Option<String>,
}

impl Source {
    /// `repository` replaces the variable that GitHub sets in workflows. `names_commit` says whether
    /// the version contains the commit.
    pub(crate) fn read(repository: Option<&str>, names_commit: bool) -> Result<Source> {
        let described = git("describe --always --abbrev=40 --exclude=* --dirty=-modified");
        let revision = described.unwrap_or_else(|| "unknown".to_owned());
        if revision.ends_with("-modified") {
            eprintln!("warning: the files of the workspace differ from the commit");
        }
        let variable = env::var("SOURCE_DATE_EPOCH").ok();
        let time =
            variable.or_else(|| git("log -1 --format=%ct")).unwrap_or_else(|| "0".to_owned());
        let seconds = time.parse::<u32>().ok().with_context(|| {
            format!("invalid SOURCE_DATE_EPOCH `{time}`\nhint: set it to seconds since 1970")
        })?;
        let repository =
            repository.map(str::to_owned).or_else(|| env::var("GITHUB_REPOSITORY").ok());
        if let Some(name) = &repository {
            let is_valid = name.split('/').count() == 2 && !name.contains([' ', ':']);
            ensure!(is_valid, "invalid repository `{name}`\nhint: an example is owner/repository");
        }
        let version = if names_commit { with_commit(&revision) } else { VERSION.to_owned() };
        Ok(Source { version, revision, seconds: seconds.into(), repository })
    }

    /// The date, such as `2026-11-21T22:30:19Z`.
    pub(crate) fn date(&self) -> String {
        let time = UNIX_EPOCH + Duration::from_secs(self.seconds);
        humantime::format_rfc3339_seconds(time).to_string()
    }

    /// The page of the source.
    pub(crate) fn url(&self) -> Option<String> {
        self.repository.as_ref().map(|name| format!("https://github.com/{name}"))
    }

    /// GitHub's registry for the owner, whose name has capitals only on pages.
    pub(crate) fn registry(&self) -> Option<String> {
        let (owner, _) = self.repository.as_ref()?.split_once('/')?;
        Some(format!("ghcr.io/{}", owner.to_lowercase()))
    }
}

/// The version with a commit, such as `0.1.0-g2a4f6c81b3d5`: `git describe` writes it so, and it may be
/// the value of a label in Kubernetes.
fn with_commit(revision: &str) -> String {
    let (commit, modified) = match revision.split_once('-') {
        Some((commit, _)) => (commit, "-modified"),
        None => (revision, ""),
    };
    format!("{VERSION}-g{commit:.12}{modified}")
}

fn git(arguments: &str) -> Option<String> {
    let text = process::stdout(workspace::git().args(arguments.split(' ')))?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{VERSION, with_commit};

    #[test]
    fn a_version_names_the_commit() {
        let commit = "2a4f6c81b3d52a4f6c81b3d52a4f6c81b3d52a4f";
        assert_eq!(with_commit(commit), format!("{VERSION}-g2a4f6c81b3d5"));
        let modified = with_commit(&format!("{commit}-modified"));
        assert_eq!(modified, format!("{VERSION}-g2a4f6c81b3d5-modified"));
    }
}
