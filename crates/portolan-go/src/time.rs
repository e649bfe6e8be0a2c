//! Points in time as Go's `time` package knows them, with its layouts, durations and zones.
//!
//! ```text
//! layout text ──layout──▶ elements ──format──▶ text
//!                                  ◀──parse───
//! ```
//!
//! There is no local zone: where Go uses the host's zone, UTC is used, so the output does not depend on the machine.

mod calendar;
mod duration;
mod format;
mod layout;
mod parse;
mod zone;

use std::fmt::Write;

use calendar::day_of;

use crate::marked;

pub use calendar::{CivilTime, MONTHS, WEEKDAYS, name};
pub use duration::{parse_duration, parse_span, print_duration};
pub use zone::Zone;

/// Nanoseconds in a second.
pub const SECOND: i128 = 1_000_000_000;

/// A point in time and the zone it is shown in.
#[derive(Debug, Clone)]
pub struct Time {
    /// Nanoseconds since 1970 in UTC.
    pub nanoseconds: i128,
    /// Where it is shown.
    pub zone: Zone,
}

/// A text in the quotes of Go's time package, which escapes every byte that is not ASCII.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for &byte in marked::bytes(text).iter() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..0x80 => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out + "\""
}

impl Time {
    /// The first moment of year one, Go's zero value.
    pub const ZERO: Self = Self {
        nanoseconds: -62_135_596_800 * SECOND,
        zone: Zone::Utc,
    };

    /// Seconds since 1970.
    pub fn unix(&self) -> i64 {
        self.nanoseconds.div_euclid(SECOND) as i64
    }

    /// The same moment in another zone.
    #[must_use]
    pub fn in_zone(&self, zone: Zone) -> Self {
        Self {
            nanoseconds: self.nanoseconds,
            zone,
        }
    }

    /// The moment some nanoseconds later.
    #[must_use]
    pub fn after(&self, nanoseconds: i64) -> Self {
        Self {
            nanoseconds: self.nanoseconds + i128::from(nanoseconds),
            zone: self.zone.clone(),
        }
    }

    /// The time by a Go layout.
    pub fn format(&self, layout: &str) -> String {
        format::format(self, layout)
    }

    /// Reads a time by a Go layout; the error is Go's.
    pub fn parse(layout: &str, text: &str) -> Result<Self, String> {
        parse::parse(layout, text)
    }

    /// The time as `String` gives it.
    pub fn to_go_string(&self) -> String {
        self.format("2006-01-02 15:04:05.999999999 -0700 MST")
    }

    /// The same time of day some years, months and days later.
    #[must_use]
    pub fn add_date(&self, years: i64, months: i64, days: i64) -> Self {
        // Beyond these the calendar has no meaning, and sums stay far from overflow.
        let bounded = |value: i64| value.clamp(-10_000_000, 10_000_000);
        let clock = self.clock();
        let year = clock.year + bounded(years);
        let month = i64::from(clock.month) + bounded(months);
        let moved = day_of(year, month, i64::from(clock.day) + bounded(days));
        let present = day_of(clock.year, i64::from(clock.month), i64::from(clock.day));
        Self {
            nanoseconds: self.nanoseconds + i128::from(moved - present) * 86_400 * SECOND,
            zone: self.zone.clone(),
        }
    }
}
