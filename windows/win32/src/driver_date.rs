//! The driver dates of the present devices.

use std::fmt;

#[cfg(windows)]
use std::io;

#[cfg(windows)]
use devices::PnpId;
#[cfg(windows)]
use windows::Win32::Devices::Properties::DEVPKEY_Device_DriverDate;

#[cfg(any(windows, test))]
use crate::property::Property;
#[cfg(windows)]
use crate::sys::setup::SetupApi;

/// `DEVPROP_TYPE_FILETIME` (devpropdef.h).
#[cfg(any(windows, test))]
const FILETIME: u32 = 0x10;

/// A day in units of 100 ns.
const DAY: u64 = 24 * 60 * 60 * 10_000_000;

/// The date of a driver package (`DriverVer` in its INF). All drivers of Microsoft have the
/// date 2006-06-21.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DriverDate {
    /// Days since 1601-01-01.
    days: u64,
}

impl DriverDate {
    /// Converts a `FILETIME`: units of 100 ns since 1601-01-01, UTC.
    #[must_use]
    pub const fn from_filetime(units: u64) -> Self {
        Self { days: units / DAY }
    }
}

impl fmt::Display for DriverDate {
    /// Year, month and day: `2023-02-14`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Days since 1 March 1600, so that a leap day is the last day of its year.
        let days = self.days + 306;
        let (era, day) = (days / 146_097, days % 146_097);
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

/// The driver date of each present device. Devices without a driver date are skipped.
///
/// # Errors
/// The devices cannot be listed.
#[cfg(windows)]
pub fn driver_dates() -> io::Result<Vec<(PnpId, DriverDate)>> {
    let setup = SetupApi::load()?;
    let list = setup.present()?;
    let mut dates = Vec::new();
    for entry in list.devices()? {
        let property = entry.property(&DEVPKEY_Device_DriverDate);
        if let Ok(Some(property)) = property
            && let Some(date) = date(&property)
            && let Ok(id) = entry.instance_id()
        {
            dates.push((PnpId::new(id), date));
        }
    }
    Ok(dates)
}

#[cfg(any(windows, test))]
fn date(property: &Property) -> Option<DriverDate> {
    let bytes = property.data.as_slice().try_into().ok().filter(|_| property.kind == FILETIME)?;
    Some(DriverDate::from_filetime(u64::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn only_a_filetime_is_a_date() {
        let property = |kind, data: &[u8]| Property { kind, data: data.to_vec() };
        let bytes = (134_774 * DAY).to_le_bytes();
        assert_eq!(date(&property(FILETIME, &bytes)).unwrap().to_string(), "1970-01-01");
        assert_eq!(date(&property(9, &bytes)), None);
        assert_eq!(date(&property(FILETIME, &bytes[..7])), None);
    }

    proptest! {
        #[test]
        fn a_later_day_has_a_later_date(days in 0_u64..2_000_000, more in 1_u64..800) {
            prop_assert!(display(days) < display(days + more));
        }

        #[test]
        fn any_filetime_has_a_date(units: u64) {
            prop_assert!(DriverDate::from_filetime(units).to_string().len() >= 10);
        }
    }
}
