//! Times as the API server writes them.

use std::time::{SystemTime, UNIX_EPOCH};

use humantime::{format_rfc3339_micros, format_rfc3339_seconds};

/// `time` in UTC with microseconds (`MicroTime`): `2026-11-22T08:30:00.000000Z`.
pub(crate) fn micro_time(time: SystemTime) -> String {
    format_rfc3339_micros(representable(time)).to_string()
}

/// `time` in UTC with seconds (`Time`): `2026-11-22T08:30:00Z`.
pub(crate) fn time(time: SystemTime) -> String {
    format_rfc3339_seconds(representable(time)).to_string()
}

/// A clock before 1970 is wrong, and has no such text.
fn representable(time: SystemTime) -> SystemTime {
    time.max(UNIX_EPOCH)
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
        assert_eq!(time(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
        let later = UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_042);
        assert_eq!(micro_time(later), "2023-11-14T22:13:20.000042Z");
    }
}
