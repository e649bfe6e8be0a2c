//! Seconds since 1970 as images write them.

use portolan_go::time::{SECOND, Time, Zone};

/// A time as RFC 3339 in UTC: `1970-01-01T00:00:00Z`.
pub(crate) fn rfc3339(seconds: u64) -> String {
    let time = Time {
        nanoseconds: i128::from(seconds) * SECOND,
        zone: Zone::Utc,
    };
    time.format("2006-01-02T15:04:05Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), expected);
        }
    }
}
