//! The source that an image is built from.

use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::{process, workspace};

/// Where the source is published.
pub(super) const REPOSITORY: &str =
    "https://github.com/directx-device-plugin/directx-device-plugin";

pub(crate) struct Source {
    /// The version of the programs, which all packages of the workspace share.
    pub(super) version: &'static str,
    /// The commit, with `-modified` if files differ from it.
    pub(super) revision: String,
    /// The time of everything in the image, in seconds since 1970: `SOURCE_DATE_EPOCH`
    /// (<https://reproducible-builds.org/specs/source-date-epoch>), otherwise that of the commit.
    pub(crate) seconds: u64,
}

impl Source {
    pub(crate) fn read() -> Result<Source> {
        let git = |arguments: &str| {
            let mut git = Command::new("git");
            git.current_dir(workspace::root()).args(arguments.split(' '));
            process::stdout(&mut git).map(|text| text.trim().to_owned())
        };
        let revision = git("describe --always --abbrev=40 --exclude=* --dirty=-modified");
        let revision = revision.unwrap_or_else(|| "unknown".to_owned());
        if revision.ends_with("-modified") {
            eprintln!("warning: the files of the workspace differ from the commit");
        }
        let variable = std::env::var("SOURCE_DATE_EPOCH").ok();
        let time =
            variable.or_else(|| git("log -1 --format=%ct")).unwrap_or_else(|| "0".to_owned());
        let seconds: u32 = time.parse().with_context(|| {
            format!("invalid SOURCE_DATE_EPOCH `{time}`\nhint: set it to seconds since 1970")
        })?;
        Ok(Source { version: env!("CARGO_PKG_VERSION"), revision, seconds: seconds.into() })
    }

    /// Such as `2026-11-21T22:30:19Z`.
    pub(super) fn date(&self) -> String {
        let time = UNIX_EPOCH + Duration::from_secs(self.seconds);
        humantime::format_rfc3339_seconds(time).to_string()
    }
}
