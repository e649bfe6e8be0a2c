//! Times of the week in which something may start.

use jiff::Timestamp;
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::schedule::{ScheduleError, zone_named};

/// A time of the week, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TimeWindowSpec {
    /// The days on which it begins; every day without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<WeekDay>,
    /// When it begins, such as `22:00`.
    pub from: String,
    /// When it ends, such as `06:00`; a time before `from` is on the next day.
    pub to: String,
    /// The name of a time zone; UTC without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the days of the week")]
pub enum WeekDay {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// A time of the week in which something may start.
///
/// ```
/// use portolan_trigger::{TimeWindow, TimeWindowSpec};
///
/// let spec = r#"{"days": ["fri"], "from": "22:00", "to": "06:00", "timeZone": "Europe/Berlin"}"#;
/// let spec: TimeWindowSpec = serde_json::from_str(spec)?;
/// let window = TimeWindow::new(&spec)?;
/// // Saturday at two in the morning in Berlin is in the night that began on Friday.
/// assert!(window.is_open("2026-11-21T01:00:00Z".parse()?));
/// assert!(!window.is_open("2026-11-22T01:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct TimeWindow {
    days: Vec<WeekDay>,
    from: Time,
    to: Time,
    zone: TimeZone,
}

/// Why a time of the week cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeWindowError {
    /// A time of day cannot be read.
    #[error("`{0}` is not a time of day such as `22:00`")]
    Time(String),
    /// The time zone is not known.
    #[error(transparent)]
    Zone(#[from] ScheduleError),
}

impl TimeWindow {
    /// Reads a time of the week.
    ///
    /// # Errors
    /// When a time or the zone cannot be read.
    pub fn new(spec: &TimeWindowSpec) -> Result<Self, TimeWindowError> {
        Ok(Self {
            days: spec.days.clone(),
            from: time_of_day(&spec.from)?,
            to: time_of_day(&spec.to)?,
            zone: zone_named(spec.time_zone.as_deref().unwrap_or("UTC"))?,
        })
    }

    /// Whether a moment is in it. One that ends when it begins lasts a day.
    pub fn is_open(&self, moment: Timestamp) -> bool {
        let local = moment.to_zoned(self.zone.clone());
        let (today, time) = (local.weekday(), local.time());
        let yesterday = today.previous();
        if self.from < self.to {
            return self.begins_on(today) && self.from <= time && time < self.to;
        }
        (self.begins_on(today) && self.from <= time)
            || (self.begins_on(yesterday) && time < self.to)
    }

    fn begins_on(&self, day: Weekday) -> bool {
        self.days.is_empty() || self.days.iter().any(|known| known.day() == day)
    }
}

impl WeekDay {
    fn day(self) -> Weekday {
        match self {
            Self::Mon => Weekday::Monday,
            Self::Tue => Weekday::Tuesday,
            Self::Wed => Weekday::Wednesday,
            Self::Thu => Weekday::Thursday,
            Self::Fri => Weekday::Friday,
            Self::Sat => Weekday::Saturday,
            Self::Sun => Weekday::Sunday,
        }
    }
}

/// A time of day of hours and minutes; `24:00` is the end of a day.
fn time_of_day(text: &str) -> Result<Time, TimeWindowError> {
    let wrong = || TimeWindowError::Time(text.chars().take(32).collect());
    let (hours, minutes) = text.split_once(':').ok_or_else(wrong)?;
    let number = |digits: &str| {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse::<i8>().ok()).flatten()
    };
    let (hours, minutes) = number(hours).zip(number(minutes)).ok_or_else(wrong)?;
    let hours = if (hours, minutes) == (24, 0) {
        0
    } else {
        hours
    };
    Time::new(hours, minutes, 0, 0).map_err(|_| wrong())
}
