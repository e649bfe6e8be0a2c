//! Days and dates: the Gregorian calendar, extended without end in both directions.

use super::{SECOND, Time};

/// A moment taken apart, as the clocks of its zone show it.
pub struct CivilTime {
    /// The year; negative before the year 0.
    pub year: i64,
    /// From 1.
    pub month: u32,
    /// Of the month, from 1.
    pub day: u32,
    /// From 1.
    pub year_day: u32,
    /// From Sunday, 0.
    pub weekday: u32,
    /// From 0 to 23.
    pub hour: u32,
    /// From 0 to 59.
    pub minute: u32,
    /// From 0 to 59.
    pub second: u32,
    /// Of the second.
    pub nanosecond: u32,
    /// Seconds east of Greenwich.
    pub offset: i32,
    /// The zone's short name, or nothing.
    pub abbreviation: String,
}

impl Time {
    /// What clocks and calendars in its zone show.
    pub fn clock(&self) -> CivilTime {
        let (offset, abbreviation) = self.zone.at(self.unix());
        let seconds = self.nanoseconds.div_euclid(SECOND) + i128::from(offset);
        let day_number = seconds.div_euclid(86_400) as i64;
        let of_day = seconds.rem_euclid(86_400) as u32;
        let (year, month, day) = date_of(day_number);
        CivilTime {
            year,
            month,
            day,
            year_day: (day_number - day_of(year, 1, 1) + 1) as u32,
            weekday: (day_number + 4).rem_euclid(7) as u32,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            nanosecond: self.nanoseconds.rem_euclid(SECOND) as u32,
            offset,
            abbreviation,
        }
    }
}

/// The number of days from 1970-01-01 to a date; months beyond the year and days beyond the month carry over.
pub(super) fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let months = year * 12 + month - 1;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    // Years begin in March here, so that the leap day is their last.
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 + day - 1
}

fn date_of(day_number: i64) -> (i64, u32, u32) {
    let shifted = day_number + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// How many days a month has.
pub(super) fn days_in(year: i64, month: i64) -> i64 {
    day_of(year, month + 1, 1) - day_of(year, month, 1)
}

/// Names in Go's spelling; the short forms are their first three letters.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Names in Go's spelling; the short forms are their first three letters.
pub const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The name of a month or weekday by its index.
pub fn name(names: &'static [&'static str], index: u32) -> &'static str {
    names.get(index as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_day_numbers_agree() {
        for (year, month, day) in [
            (1970, 1, 1),
            (2000, 2, 29),
            (1, 1, 1),
            (-1, 12, 31),
            (2024, 12, 31),
        ] {
            let number = day_of(year, i64::from(month), i64::from(day));
            assert_eq!(date_of(number), (year, month, day));
        }
        assert_eq!(day_of(2023, 14, 1), day_of(2024, 2, 1));
        assert_eq!(
            (days_in(2024, 2), days_in(2023, 2), days_in(2023, 12)),
            (29, 28, 31)
        );
    }
}
