//! Zones: UTC, a fixed offset, or a zone of the built-in zone database.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Where a time is shown.
#[derive(Debug, Clone)]
pub enum Zone {
    /// Greenwich.
    Utc,
    /// A name, perhaps empty, and seconds east of Greenwich.
    Fixed(String, i32),
    /// A place with its history of offsets.
    Place(TimeZone),
}

impl Zone {
    /// A zone by its name in the database; none when there is no such place. Names are case-sensitive, as files are.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "" | "UTC" | "Local" => return Some(Self::Utc),
            _ => {}
        }
        let zone = TimeZone::get(name).ok()?;
        let exact = zone.iana_name().is_some_and(|found| found == name);
        exact.then_some(Self::Place(zone))
    }

    /// Seconds east of Greenwich and the short name, at a moment in seconds since 1970.
    pub(super) fn at(&self, unix: i64) -> (i32, String) {
        match self {
            Self::Utc => (0, "UTC".to_owned()),
            Self::Fixed(name, offset) => (*offset, name.clone()),
            Self::Place(zone) => {
                let limits = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
                let moment = Timestamp::from_second(unix.clamp(limits.0, limits.1));
                let moment = moment.unwrap_or(Timestamp::UNIX_EPOCH);
                let info = zone.to_offset_info(moment);
                (info.offset().seconds(), info.abbreviation().to_owned())
            }
        }
    }
}
