//! The source that an image is built from.

use std::env;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use crate::{process, workspace};

/// The registry in the manifests, the chart and the names of images until they are published.
/// Nobody can own it (RFC 2606).
pub(crate) const NO_REGISTRY: &str = "registry.example.com";

pub(crate) struct Source {
    /// The commit, with `-modified` if files differ from it.
    pub(super) revision: String,
    /// The time of everything in the image, in seconds since 1970: `SOURCE_DATE_EPOCH`
    /// (<https://reproducible-builds.org/specs/source-date-epoch>), otherwise that of the commit.
    pub(crate) seconds: u64,
    /// `OWNER/REPOSITORY` on GitHub, if it is known.
    pub(crate) repository: Option<String>,
}

impl Source {
    /// `repository` replaces the variable that GitHub sets in workflows.
    pub(crate) fn read(repository: Option<&str>) -> Result<Source> {
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
        Ok(Source { revision, seconds: seconds.into(), repository })
    }

    /// The date, such as `2026-11-21T22:30:19Z`.
    pub(super) fn date(&self) -> String {
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

fn git(arguments: &str) -> Option<String> {
    let text = process::stdout(workspace::git().args(arguments.split(' ')))?;
    Some(text.trim().to_owned())
}
