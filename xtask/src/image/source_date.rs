//! The time that everything in an image is dated with.
//!
//! `SOURCE_DATE_EPOCH` (<https://reproducible-builds.org/specs/source-date-epoch>) if it is
//! set, otherwise the time of the commit, so that a second build gives the same bytes.

use anyhow::{Context, Result};

/// Seconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceDate(u64);

/// The latest time that Windows file times and RFC 3339 both can express: the year 9999.
const LAST: u64 = 253_402_300_799;

impl SourceDate {
    /// `variable` is the value of `SOURCE_DATE_EPOCH`, `commit` the time of the commit.
    /// 1970 if there is neither.
    pub(super) fn new(variable: Option<&str>, commit: Option<u64>) -> Result<SourceDate> {
        let Some(text) = variable.filter(|text| !text.is_empty()) else {
            return Ok(SourceDate(commit.unwrap_or(0)));
        };
        let seconds = text.parse().ok().filter(|seconds| *seconds <= LAST);
        seconds.map(SourceDate).with_context(|| {
            format!("invalid SOURCE_DATE_EPOCH `{text}`\nhint: set it to seconds since 1970")
        })
    }

    pub(super) fn seconds(self) -> u64 {
        self.0
    }

    /// Such as `2026-11-21T22:30:19Z`.
    pub(super) fn rfc3339(self) -> String {
        let (days, seconds) = (self.0 / 86_400, self.0 % 86_400);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar
/// (<https://howardhinnant.github.io/date_algorithms.html>, `civil_from_days`).
pub(crate) fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_precedes_the_commit() {
        let seconds = |variable, commit| SourceDate::new(variable, commit).unwrap().seconds();
        assert_eq!(seconds(Some("0"), Some(7)), 0);
        assert_eq!(seconds(Some(""), Some(7)), 7);
        assert_eq!(seconds(None, Some(7)), 7);
        assert_eq!(seconds(None, None), 0);
    }

    #[test]
    fn an_invalid_variable_is_named() {
        for text in ["yesterday", "-1", "1.5", "253402300800"] {
            let error = SourceDate::new(Some(text), None).unwrap_err().to_string();
            let start = format!("invalid SOURCE_DATE_EPOCH `{text}`\nhint: ");
            assert!(error.starts_with(&start), "{error}");
        }
    }

    #[test]
    fn times_are_printed_in_utc() {
        // From `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_826_554, "2000-02-29T12:15:54Z"),
            (1_795_299_769, "2026-11-21T22:22:49Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (LAST, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(SourceDate(seconds).rfc3339(), text);
        }
    }
}
