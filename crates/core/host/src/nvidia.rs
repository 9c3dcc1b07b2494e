//! What NVIDIA's management library (NVML) reports of a GPU.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};

use crate::ParseError;
use crate::driver_date::DriverDate;
use crate::text::file_values::{named_value, text_value};
use crate::text::parse::parse_decimals;

/// What NVML reports of a GPU, as far as it answers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NvidiaFacts {
    /// The UUID (`GPU-…`) by which CUDA identifies the GPU. Inventories never contain it.
    #[serde(skip)]
    pub uuid: Option<String>,
    /// The compute capability of CUDA, which names the architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<ComputeCapability>,
    /// Whether the driver has the license that it needs for the GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<License>,
}

impl NvidiaFacts {
    /// Whether the driver is known to lack the license that it needs.
    #[must_use]
    pub fn is_unlicensed(&self) -> bool {
        self.license.is_some_and(|license| license.state == LicenseState::Unlicensed)
    }

    /// Whether an inventory contains nothing of this.
    pub(crate) fn is_left_out(&self) -> bool {
        self.compute_capability.is_none() && self.license.is_none()
    }
}

/// A compute capability of CUDA, such as 8.6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ComputeCapability {
    /// The architecture.
    pub major: u32,
    /// Its variant.
    pub minor: u32,
}

text_value!(ComputeCapability);

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for ComputeCapability {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a compute capability (two numbers separated by a dot, such as 8.6)";
        let [major, minor] =
            parse_decimals(text, '.').ok_or_else(|| ParseError::new(text, expected))?;
        Ok(ComputeCapability { major, minor })
    }
}

/// The license of a driver for a GPU. vGPUs need one, and GPUs with a driver for virtual
/// workstations (GRID). Without it, the GPU works at first and is slowed down after minutes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct License {
    /// Whether the driver has it.
    pub state: LicenseState,
    /// When it expires, if it does. The driver renews it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<UtcTime>,
}

/// Whether a driver has the license that it needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Display, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case", ascii_case_insensitive)]
pub enum LicenseState {
    /// It needs none.
    NotRequired,
    /// It has one now.
    Licensed,
    /// It has none now.
    Unlicensed,
}

named_value!(LicenseState);

impl License {
    /// The license of a driver that needs none.
    pub const NOT_REQUIRED: License = License { state: LicenseState::NotRequired, expires: None };
    /// The license of a driver that has none.
    pub const MISSING: License = License { state: LicenseState::Unlicensed, expires: None };

    /// The license of a driver that has one, until this time if it expires.
    #[must_use]
    pub const fn until(expires: Option<UtcTime>) -> License {
        License { state: LicenseState::Licensed, expires }
    }
}

impl fmt::Display for License {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.state, self.expires) {
            (LicenseState::NotRequired, _) => f.write_str("not required"),
            (LicenseState::Licensed, Some(expires)) => write!(f, "licensed until {expires}"),
            (LicenseState::Licensed, None) => f.write_str("licensed"),
            (LicenseState::Unlicensed, _) => f.write_str("unlicensed"),
        }
    }
}

/// A time in UTC, to the second, such as `2026-12-01T10:00:00Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UtcTime {
    /// Since 1601-01-01, as in a [`DriverDate`].
    seconds: u64,
}

text_value!(UtcTime);

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// 100 ns units in a second.
const FILETIME_UNITS: u64 = 10_000_000;

/// The seconds from 1601-01-01 to 1970-01-01.
const UNIX_EPOCH: u64 = 11_644_473_600;

impl UtcTime {
    /// The time of a calendar and a clock: year, month, day, hour, minute and second.
    #[must_use]
    pub fn from_calendar([year, month, day, hour, minute, second]: [u32; 6]) -> Option<UtcTime> {
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z").parse().ok()
    }

    /// The seconds since 1970-01-01, or 0 for an earlier time.
    #[must_use]
    pub const fn unix_seconds(self) -> u64 {
        self.seconds.saturating_sub(UNIX_EPOCH)
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.seconds / SECONDS_PER_DAY;
        let date = DriverDate::from_filetime(days * SECONDS_PER_DAY * FILETIME_UNITS);
        let second = self.seconds % SECONDS_PER_DAY;
        let [hour, minute, second] = [second / 3600, second / 60 % 60, second % 60];
        write!(f, "{date}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl FromStr for UtcTime {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a time in UTC such as 2026-12-01T10:00:00Z";
        let time = text.strip_suffix('Z').and_then(|text| text.split_once('T')).and_then(
            |(date, clock)| {
                let date: DriverDate = date.parse().ok()?;
                let [hour @ 0..=23, minute @ 0..=59, second @ 0..=59] =
                    parse_decimals::<u64, 3>(clock, ':')?
                else {
                    return None;
                };
                let day = date.filetime() / FILETIME_UNITS;
                Some(UtcTime { seconds: day + hour * 3600 + minute * 60 + second })
            },
        );
        // A number with another count of digits would print as another text.
        time.filter(|time| time.to_string() == text).ok_or_else(|| ParseError::new(text, expected))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_is_a_real_day_and_a_real_time_of_day() {
        let time: UtcTime = "2026-12-01T10:00:01Z".parse().unwrap();
        assert_eq!(time.unix_seconds(), 1_796_119_201);
        assert_eq!(UtcTime::from_calendar([2026, 12, 1, 10, 0, 1]), Some(time));
        assert_eq!("1970-01-01T00:00:00Z".parse::<UtcTime>().unwrap().unix_seconds(), 0);
        assert_eq!("1601-01-01T00:00:00Z".parse::<UtcTime>().unwrap().unix_seconds(), 0);
        for bad in [
            "",
            "2026-12-01",
            "2026-12-01T10:00:01",
            "2026-12-01 10:00:01Z",
            "2026-13-01T10:00:01Z",
            "2026-02-29T10:00:01Z",
            "2026-12-01T24:00:00Z",
            "2026-12-01T10:60:00Z",
            "2026-12-01T10:00:60Z",
            "2026-12-01T1:00:00Z",
            "2026-12-01T10:00:01+01:00",
        ] {
            assert!(bad.parse::<UtcTime>().is_err(), "{bad}");
        }
        // What NVML writes if it has no time.
        assert_eq!(UtcTime::from_calendar([0; 6]), None);
        assert_eq!(UtcTime::from_calendar([u32::MAX; 6]), None);
    }

    #[test]
    fn a_license_prints_when_it_expires() {
        let expires = UtcTime::from_calendar([2026, 12, 1, 10, 0, 1]);
        for (license, text) in [
            (License::NOT_REQUIRED, "not required"),
            (License::until(expires), "licensed until 2026-12-01T10:00:01Z"),
            (License::until(None), "licensed"),
            (License::MISSING, "unlicensed"),
        ] {
            assert_eq!(license.to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn times_and_capabilities_round_trip(
            seconds in 0..u64::MAX / FILETIME_UNITS, major: u32, minor: u32,
        ) {
            let time = UtcTime { seconds };
            prop_assert_eq!(time.to_string().parse(), Ok(time));
            let capability = ComputeCapability { major, minor };
            prop_assert_eq!(capability.to_string().parse(), Ok(capability));
        }

        #[test]
        fn any_calendar_is_read_without_a_panic(numbers: [u32; 6]) {
            if let Some(time) = UtcTime::from_calendar(numbers) {
                prop_assert_eq!(time.to_string().parse(), Ok(time));
            }
        }
    }
}
