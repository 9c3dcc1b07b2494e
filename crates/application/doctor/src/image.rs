//! Whether a host can run the containers of an image, by their OS versions.
//!
//! The rule is that of Microsoft's "Windows container version compatibility" page, as
//! containerd applies it (`platforms`, `checkWindowsHostAndContainerCompat`): up to
//! Server 2019 the builds must be the same; from Server 2022 on a host also runs the
//! images of the long-term release before its own, and of every build between. GPUs need
//! process isolation, so Hyper-V isolation, which has no such rule, does not help.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use host::HostBuild;

/// The long-term releases whose kernels keep a stable interface, oldest first:
/// Server 2022 and Server 2025.
const STABLE_RELEASES: [u32; 2] = [20_348, 26_100];

/// The tags of Microsoft's base images that stand for one version of Windows, with its build ("Base
/// image servicing lifecycles", learn.microsoft.com). Those of long-term releases begin with `ltsc`.
const TAGS: [(&str, u32); 12] = [
    ("2016", 14_393),
    ("1607", 14_393),
    ("1709", 16_299),
    ("1803", 17_134),
    ("2019", 17_763),
    ("1809", 17_763),
    ("1903", 18_362),
    ("1909", 18_363),
    ("2004", 19_041),
    ("20h2", 19_042),
    ("2022", 20_348),
    ("2025", 26_100),
];

/// The OS version of an image: `os.version` of its manifest, without the revision. Of the supported
/// hosts, none compares revisions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ImageVersion {
    major: u32,
    minor: u32,
    pub(crate) build: u32,
}

impl FromStr for ImageVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(build) = build_of_tag(text) {
            return Ok(ImageVersion { major: 10, minor: 0, build });
        }
        let mut suffixes = [".x", ".X", ".*"].iter();
        let version = suffixes.find_map(|suffix| text.strip_suffix(suffix)).unwrap_or(text);
        match text.parse().or_else(|_| format!("{version}.0").parse()) {
            Ok(HostBuild { major, minor, build, .. }) => Ok(ImageVersion { major, minor, build }),
            Err(_) => Err(format!(
                "`{text}` is not the OS version of an image (such as 10.0.20348.1547, 10.0.20348.x, \
                 10.0.20348 or ltsc2022)"
            )),
        }
    }
}

/// The build of a tag, also at the end of one such as `windowsservercore-ltsc2022` or of the name of
/// an image.
fn build_of_tag(text: &str) -> Option<u32> {
    let tag = text.rsplit([':', '-', ' ']).next()?.to_lowercase();
    let tag = tag.strip_prefix("ltsc").unwrap_or(&tag);
    TAGS.iter().find(|(known, _)| *known == tag).map(|(_, build)| *build)
}

impl fmt::Display for ImageVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.build)
    }
}

/// The images of which `host` runs containers under process isolation.
pub(crate) fn runnable_images(host: HostBuild) -> RangeInclusive<ImageVersion> {
    let HostBuild { major, minor, build, .. } = host;
    let oldest = match STABLE_RELEASES.iter().rposition(|release| *release <= build) {
        None => build,
        Some(newest) => STABLE_RELEASES[newest.saturating_sub(1)],
    };
    ImageVersion { major, minor, build: oldest }..=ImageVersion { major, minor, build }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_and_without_a_revision_and_tags_are_parsed() {
        for text in
            ["10.0.20348.1547", "10.0.20348", "10.0.20348.x", "10.0.20348.X", "10.0.20348.*"]
        {
            assert_eq!(text.parse::<ImageVersion>().unwrap().to_string(), "10.0.20348", "{text}");
        }
        for (text, build) in [
            ("ltsc2019", 17_763),
            ("1809", 17_763),
            ("20H2", 19_042),
            ("LTSC2022", 20_348),
            ("Windows Server 2019", 17_763),
            ("windowsservercore-ltsc2025", 26_100),
            ("mcr.microsoft.com/windows/nanoserver:ltsc2022", 20_348),
        ] {
            assert_eq!(text.parse::<ImageVersion>().unwrap().build, build, "{text}");
        }
        for bad in [
            "",
            "ltsc",
            "latest",
            "21H2",
            "10.0",
            "10.0.x",
            "10.0.20348.1.2",
            "10.0.+1",
            "x.0.1",
            "1.2.y.3",
        ] {
            assert!(bad.parse::<ImageVersion>().is_err(), "{bad}");
        }
    }

    #[test]
    fn compatibility_follows_the_table_of_microsoft() {
        let ws2016 = "10.0.14393.5582";
        let ws2019 = "10.0.17763.4010";
        let ws2022 = "10.0.20348.1547";
        let annual = "10.0.25398.1000";
        let ws2025 = "10.0.26100.1742";
        let windows_11 = "10.0.26200.1";
        for (image, host, runs) in [
            (ws2019, ws2019, true),
            ("10.0.17763.1", ws2019, true),
            (ws2016, ws2019, false),
            (ws2022, ws2019, false),
            (ws2022, ws2022, true),
            (ws2019, ws2022, false),
            (ws2025, ws2022, false),
            (ws2022, annual, true),
            (ws2022, ws2025, true),
            (ws2025, ws2025, true),
            (ws2019, ws2025, false),
            (ws2022, windows_11, true),
            ("6.3.20348", ws2022, false),
            ("11.0.1.1", ws2022, false),
        ] {
            let images = runnable_images(host.parse().unwrap());
            assert_eq!(images.contains(&image.parse().unwrap()), runs, "{image} on {host}");
        }
    }
}
