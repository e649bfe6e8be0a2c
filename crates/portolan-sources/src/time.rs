//! The time of day in UTC, as text.

use std::time::{SystemTime, UNIX_EPOCH};

use portolan_object::Day;

/// A moment, split as calendars and clocks write it.
pub(crate) struct Moment {
    day: Day,
    time: (u64, u64, u64),
}

impl Moment {
    pub(crate) fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs());
        Self {
            day: Day::of_unix_seconds(seconds),
            time: (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60),
        }
    }

    /// `2026-11-15T23:59:00Z`, as Go writes it into locks.
    pub(crate) fn rfc3339(&self) -> String {
        let (hour, minute, second) = self.time;
        format!("{}T{hour:02}:{minute:02}:{second:02}Z", self.day)
    }

    /// `20261115T235900Z`, as buckets want it.
    pub(crate) fn compact(&self) -> String {
        self.rfc3339().replace(['-', ':'], "")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn seconds_become_dates() {
        let moment = |seconds| Moment::of(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(moment(0).rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(moment(951_782_400).rfc3339(), "2000-02-29T00:00:00Z");
        assert_eq!(moment(1_794_787_199).compact(), "20261115T235959Z");
    }
}
