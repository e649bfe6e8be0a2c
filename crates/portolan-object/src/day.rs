//! A calendar day, for expiry dates.

use std::fmt;
use std::str::FromStr;

/// A day; ordered as the calendar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::struct_field_names, reason = "the calendar's own word")]
pub struct Day {
    year: u16,
    month: u8,
    day: u8,
}

/// Why a text is not a day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a day such as `2027-01-31`")]
pub struct BadDay(String);

impl Day {
    /// The day that this many seconds after the beginning of 1970 fall on, in UTC.
    pub fn of_unix_seconds(seconds: u64) -> Self {
        // Days are counted in eras of 400 years that begin on the first of March.
        let days = seconds / 86_400 + 719_468;
        let (era, in_era) = (days / 146_097, days % 146_097);
        let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * year + year / 4 - year / 100);
        let march_month = (5 * in_year + 2) / 153;
        let day = in_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        };
        Self {
            year: (year + era * 400 + u64::from(month <= 2)) as u16,
            month: month as u8,
            day: day as u8,
        }
    }

    /// How many days its month has; none when there is no such month.
    fn days_in_month(self) -> u8 {
        let is_leap = self.year.is_multiple_of(4)
            && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        match self.month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if is_leap => 29,
            2 => 28,
            _ => 0,
        }
    }
}

impl FromStr for Day {
    type Err = BadDay;

    fn from_str(text: &str) -> Result<Self, BadDay> {
        let bad = || BadDay(text.to_owned());
        let parts: Vec<&str> = text.split('-').collect();
        let [year, month, day] = parts.as_slice() else {
            return Err(bad());
        };
        let day = Self {
            year: year.parse().map_err(|_| bad())?,
            month: month.parse().map_err(|_| bad())?,
            day: day.parse().map_err(|_| bad())?,
        };
        let in_month = (1..=day.days_in_month()).contains(&day.day);
        if day.year >= 1970 && in_month {
            Ok(day)
        } else {
            Err(bad())
        }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_fall_on_days() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_795_219_199, "2026-11-20"),
        ] {
            assert_eq!(Day::of_unix_seconds(seconds).to_string(), day);
        }
    }

    #[test]
    fn only_days_are_days() {
        for text in ["2026-12-31", "2028-02-29", "2000-02-29"] {
            assert_eq!(text.parse::<Day>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2100-02-29",
            "2026-04-31",
            "soon",
            "2026-01-01T00:00:00Z",
        ] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }
}
