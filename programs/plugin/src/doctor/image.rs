//! Whether a host can run the containers of an image, by their OS versions.
//!
//! The rule is that of Microsoft's "Windows container version compatibility" page, as
//! containerd applies it (`platforms`, `checkWindowsHostAndContainerCompat`): up to
//! Server 2019 the builds must be the same; from Server 2022 on a host also runs the
//! images of the long-term release before its own, and of every build between. GPUs need
//! process isolation, so Hyper-V isolation, which has no such rule, does not help.

use std::fmt;
use std::str::FromStr;

use devices::HostBuild;

const SERVER_2016: u32 = 14_393;

/// The long-term releases whose kernels keep a stable interface, oldest first:
/// Server 2022 and Server 2025.
const STABLE_RELEASES: [u32; 2] = [20_348, 26_100];

/// The OS version of an image: `os.version` of its manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ImageVersion {
    major: u32,
    minor: u32,
    build: u32,
    revision: Option<u32>,
}

impl FromStr for ImageVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || {
            format!(
                "`{text}` is not the OS version of an image (such as 10.0.20348.1547, 10.0.20348.x \
                 or 10.0.20348)"
            )
        };
        let parts: Vec<&str> = text.split('.').collect();
        let (fixed, revision) = match parts.as_slice() {
            [fixed @ .., "x" | "X" | "*"] if fixed.len() == 3 => (fixed, None),
            [fixed @ .., revision] if fixed.len() == 3 => (fixed, Some(*revision)),
            fixed => (fixed, None),
        };
        let &[major, minor, build] = fixed else { return Err(error()) };
        let number = |part: &str| match part.parse() {
            Ok(number) if part.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
            _ => Err(error()),
        };
        Ok(ImageVersion {
            major: number(major)?,
            minor: number(minor)?,
            build: number(build)?,
            revision: revision.map(number).transpose()?,
        })
    }
}

impl fmt::Display for ImageVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.build)?;
        match self.revision {
            Some(revision) => write!(f, ".{revision}"),
            None => Ok(()),
        }
    }
}

/// Whether the containers of an image start on a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compatibility {
    /// They do.
    Runs,
    /// They do, but Microsoft supports only equal revisions, and these differ.
    Unsupported,
    /// They do not: the image is newer than the host.
    TooNew,
    /// They do not: the image is older than every image that the host runs.
    TooOld {
        /// The oldest build that the host runs.
        oldest: u32,
    },
}

impl ImageVersion {
    /// Whether `host` runs containers of this image under process isolation.
    pub(crate) fn compatibility_with(self, host: HostBuild) -> Compatibility {
        let image = (self.major, self.minor, self.build);
        let oldest = oldest_image(host.build);
        if image > (host.major, host.minor, host.build) {
            Compatibility::TooNew
        } else if image < (host.major, host.minor, oldest) {
            Compatibility::TooOld { oldest }
        } else if host.build == SERVER_2016 && self.revision.is_some_and(|r| r != host.revision) {
            Compatibility::Unsupported
        } else {
            Compatibility::Runs
        }
    }
}

/// The oldest build whose images a host of `build` runs.
fn oldest_image(build: u32) -> u32 {
    match STABLE_RELEASES.iter().rposition(|release| *release <= build) {
        None => build,
        Some(newest) => STABLE_RELEASES[newest.saturating_sub(1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_and_without_a_revision_are_parsed() {
        for (text, shown) in [
            ("10.0.20348.1547", "10.0.20348.1547"),
            ("10.0.20348", "10.0.20348"),
            ("10.0.20348.x", "10.0.20348"),
            ("10.0.20348.*", "10.0.20348"),
        ] {
            assert_eq!(text.parse::<ImageVersion>().unwrap().to_string(), shown);
        }
        for bad in
            ["", "ltsc2022", "10.0", "10.0.x", "10.0.20348.1.2", "10.0.+1", "x.0.1", "1.2.y.3"]
        {
            assert!(bad.parse::<ImageVersion>().is_err(), "{bad}");
        }
    }

    #[test]
    fn compatibility_follows_the_table_of_microsoft() {
        let on = |image: &str, host: &str| {
            image.parse::<ImageVersion>().unwrap().compatibility_with(host.parse().unwrap())
        };
        let (ws2016, ws2019) = ("10.0.14393.5582", "10.0.17763.4010");
        let (ws2022, annual, ws2025) = ("10.0.20348.1547", "10.0.25398.1000", "10.0.26100.1742");
        let windows_11 = "10.0.26200.1";
        for (image, host, expected) in [
            (ws2019, ws2019, Compatibility::Runs),
            ("10.0.17763.1", ws2019, Compatibility::Runs),
            (ws2016, ws2019, Compatibility::TooOld { oldest: 17_763 }),
            (ws2022, ws2019, Compatibility::TooNew),
            (ws2022, ws2022, Compatibility::Runs),
            (ws2019, ws2022, Compatibility::TooOld { oldest: 20_348 }),
            (ws2025, ws2022, Compatibility::TooNew),
            (ws2022, annual, Compatibility::Runs),
            (ws2022, ws2025, Compatibility::Runs),
            (ws2025, ws2025, Compatibility::Runs),
            (ws2019, ws2025, Compatibility::TooOld { oldest: 20_348 }),
            (ws2022, windows_11, Compatibility::Runs),
            (ws2016, ws2016, Compatibility::Runs),
            ("10.0.14393.1", ws2016, Compatibility::Unsupported),
            ("10.0.14393", ws2016, Compatibility::Runs),
            ("6.3.20348", ws2022, Compatibility::TooOld { oldest: 20_348 }),
            ("11.0.1.1", ws2022, Compatibility::TooNew),
        ] {
            assert_eq!(on(image, host), expected, "{image} on {host}");
        }
    }
}
