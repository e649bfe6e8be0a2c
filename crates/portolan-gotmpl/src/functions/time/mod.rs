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
mod object;
mod parse;
mod zone;

use std::fmt::Write;

use crate::fmt::raw;

pub(super) use duration::{parse_duration, print_duration};
pub(super) use object::Named;
pub(super) use zone::Zone;

/// Nanoseconds in a second.
pub(super) const SECOND: i128 = 1_000_000_000;

/// A point in time and the zone it is shown in.
#[derive(Debug, Clone)]
pub(super) struct Time {
    /// Nanoseconds since 1970 in UTC.
    pub(super) nanoseconds: i128,
    /// Where it is shown.
    pub(super) zone: Zone,
}

/// A text in the quotes of Go's time package, which escapes every byte that is not ASCII.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    let text = raw::value(text.to_owned());
    for &byte in text.as_bytes().unwrap_or_default() {
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
    pub(super) const ZERO: Self = Self {
        nanoseconds: -62_135_596_800 * SECOND,
        zone: Zone::Utc,
    };

    /// Seconds since 1970.
    pub(super) fn unix(&self) -> i64 {
        self.nanoseconds.div_euclid(SECOND) as i64
    }

    /// The same moment in another zone.
    pub(super) fn in_zone(&self, zone: Zone) -> Self {
        Self {
            nanoseconds: self.nanoseconds,
            zone,
        }
    }

    /// The moment some nanoseconds later.
    pub(super) fn after(&self, nanoseconds: i64) -> Self {
        Self {
            nanoseconds: self.nanoseconds + i128::from(nanoseconds),
            zone: self.zone.clone(),
        }
    }

    /// The time by a Go layout.
    pub(super) fn format(&self, layout: &str) -> String {
        format::format(self, layout)
    }

    /// Reads a time by a Go layout; the error is Go's.
    pub(super) fn parse(layout: &str, text: &str) -> Result<Self, String> {
        parse::parse(layout, text)
    }
}
