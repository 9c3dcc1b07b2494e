//! Times as the API server writes them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
const DAY: u64 = 86_400;

/// `time` in UTC with microseconds (`MicroTime`): `2026-11-22T08:30:00.000000Z`.
pub(crate) fn micro_time(time: SystemTime) -> String {
    let (text, micros) = parts(time);
    format!("{text}.{micros:06}Z")
}

/// `time` in UTC with seconds (`Time`): `2026-11-22T08:30:00Z`.
pub(crate) fn time(time: SystemTime) -> String {
    format!("{}Z", parts(time).0)
}

fn parts(time: SystemTime) -> (String, u32) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (day, second) = (since.as_secs() / DAY, since.as_secs() % DAY);
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    (text, since.subsec_micros())
}

/// Year, month and day of a day since 1970-01-01 (Howard Hinnant, "chrono-compatible low-level
/// date algorithms", `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    // Days since 1 March 0000, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(time(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        let later = UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_042);
        assert_eq!(micro_time(later), "2023-11-14T22:13:20.000042Z");
    }
}
