//! The time of day in UTC, as text.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment, split as calendars write it.
pub(crate) struct Moment {
    date: (u64, u64, u64),
    time: (u64, u64, u64),
}

impl Moment {
    pub(crate) fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs());
        Self {
            date: date(seconds / 86_400),
            time: (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60),
        }
    }

    /// `2026-11-15T23:59:00Z`, as Go writes it into locks.
    pub(crate) fn rfc3339(&self) -> String {
        let ((year, month, day), (hour, minute, second)) = (self.date, self.time);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// `20261115T235900Z`, as buckets want it.
    pub(crate) fn compact(&self) -> String {
        let ((year, month, day), (hour, minute, second)) = (self.date, self.time);
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }
}

/// The calendar date so many days after 1970-01-01, counted in years that begin in March.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
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
