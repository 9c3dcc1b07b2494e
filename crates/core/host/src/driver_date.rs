//! The date of a driver package.

use std::fmt;
use std::str::FromStr;

use crate::ParseError;
use crate::text::file_values::text_value;
use crate::text::parse::parse_decimals;

/// 100 ns units in a day.
const DAY: u64 = 24 * 60 * 60 * 10_000_000;

/// The last day that a `FILETIME` can express, in the year 60056.
const LAST_DAY: u64 = u64::MAX / DAY;

/// The date of a driver package (`DriverVer` in its INF). All drivers of Microsoft have the
/// date 2006-06-21.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DriverDate {
    /// Days since 1601-01-01.
    days: u64,
}

text_value!(DriverDate);

impl DriverDate {
    /// Converts a `FILETIME`: units of 100 ns since 1601-01-01, UTC.
    #[must_use]
    pub const fn from_filetime(units: u64) -> Self {
        Self { days: units / DAY }
    }

    /// The first moment of the day as a `FILETIME`.
    #[must_use]
    pub const fn filetime(self) -> u64 {
        self.days * DAY
    }
}

impl fmt::Display for DriverDate {
    /// Year, month and day: `2023-02-14`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Days since 1 March 1600, so that a leap day is the last day of its year.
        let days = self.days + 306;
        let era = days / 146_097;
        let day = days % 146_097;
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year + year / 4 - year / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let (month, carry) = if month_from_march < 10 {
            (month_from_march + 3, 0)
        } else {
            (month_from_march - 9, 1)
        };
        write!(f, "{:04}-{month:02}-{day:02}", 1_600 + era * 400 + year + carry)
    }
}

impl FromStr for DriverDate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a date since 1601-01-01 (year, month and day, such as 2023-02-14)";
        let date = match parse_decimals(text, '-') {
            Some([year @ 1_601..=60_056, month @ 1..=12, day @ 1..=31]) => {
                // The year begins with March, as in `Display`.
                let year = if month < 3 { year - 1 } else { year } - 1_600;
                let month_from_march = (month + 9) % 12;
                let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
                let days: u64 = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year;
                let days = days.checked_sub(306).filter(|days| *days <= LAST_DAY);
                days.map(|days| DriverDate { days })
            }
            _ => None,
        };
        // A day that the month does not have would print as another date.
        date.filter(|date| date.to_string() == text).ok_or_else(|| ParseError::new(text, expected))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn display(days: u64) -> String {
        DriverDate::from_filetime(days * DAY + 1).to_string()
    }

    #[test]
    fn dates_match_the_calendar() {
        for (days, date) in [
            (0, "1601-01-01"),
            (58, "1601-02-28"),
            (59, "1601-03-01"),
            (134_774, "1970-01-01"),
            // 2006-06-21, the date of Microsoft's own drivers: 13,320 days after 1970.
            (134_774 + 13_320, "2006-06-21"),
            (134_774 + 11_016, "2000-02-29"),
            (134_774 + 19_402, "2023-02-14"),
            (134_774 + 19_782, "2024-02-29"),
            (134_774 + 19_783, "2024-03-01"),
            (134_774 + 20_088, "2024-12-31"),
        ] {
            assert_eq!(display(days), date);
        }
    }

    #[test]
    fn other_texts_are_not_dates() {
        for bad in [
            "",
            "2023",
            "2023-2-14",
            "2023-02-30",
            "2023-13-01",
            "1600-12-31",
            "60056-12-31",
            "2023-02-14 ",
            "x",
        ] {
            assert!(bad.parse::<DriverDate>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_later_day_has_a_later_date(days in 0_u64..2_000_000, more in 1_u64..800) {
            prop_assert!(display(days) < display(days + more));
        }

        #[test]
        fn dates_print_and_parse(days in prop_oneof![0..=LAST_DAY, LAST_DAY - 1_000..=LAST_DAY]) {
            let date = DriverDate::from_filetime(days * DAY);
            prop_assert_eq!(date.to_string().parse(), Ok(date));
            prop_assert_eq!(DriverDate::from_filetime(date.filetime()), date);
        }

        #[test]
        fn any_filetime_has_a_date(units: u64) {
            prop_assert!(DriverDate::from_filetime(units).to_string().len() >= 10);
        }
    }
}
