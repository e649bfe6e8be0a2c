//! Times as text, by a layout.

use std::fmt::Write;

use super::Time;
use super::calendar::{CivilTime, MONTHS, WEEKDAYS, name};
use super::layout::{Element, Offset, next_piece};

/// The time by a layout.
pub(super) fn format(time: &Time, layout: &str) -> String {
    let clock = time.clock();
    let mut out = String::with_capacity(layout.len() + 8);
    let mut rest = layout;
    loop {
        let piece = next_piece(rest);
        out.push_str(piece.prefix);
        let Some((element, spelling)) = piece.element else {
            return out;
        };
        push_element(&mut out, &clock, element, spelling);
        rest = piece.rest;
    }
}

fn push_element(out: &mut String, clock: &CivilTime, element: Element, spelling: &str) {
    let hour12 = match clock.hour % 12 {
        0 => 12,
        hour => hour,
    };
    let meridiem = |names: [&'static str; 2]| names[usize::from(clock.hour >= 12)];
    let month = name(&MONTHS, clock.month - 1);
    let weekday = name(&WEEKDAYS, clock.weekday);
    // Writing to a string cannot fail.
    let _ = match element {
        Element::LongMonth => write!(out, "{month}"),
        Element::ShortMonth => write!(out, "{month:.3}"),
        Element::NumericMonth => write!(out, "{}", clock.month),
        Element::ZeroMonth => write!(out, "{:02}", clock.month),
        Element::LongWeekday => write!(out, "{weekday}"),
        Element::ShortWeekday => write!(out, "{weekday:.3}"),
        Element::Day => write!(out, "{}", clock.day),
        Element::SpaceDay => write!(out, "{:2}", clock.day),
        Element::ZeroDay => write!(out, "{:02}", clock.day),
        Element::SpaceYearDay => write!(out, "{:3}", clock.year_day),
        Element::ZeroYearDay => write!(out, "{:03}", clock.year_day),
        Element::Hour => write!(out, "{:02}", clock.hour),
        Element::Hour12 => write!(out, "{hour12}"),
        Element::ZeroHour12 => write!(out, "{hour12:02}"),
        Element::Minute => write!(out, "{}", clock.minute),
        Element::ZeroMinute => write!(out, "{:02}", clock.minute),
        Element::Second => write!(out, "{}", clock.second),
        Element::ZeroSecond => write!(out, "{:02}", clock.second),
        Element::LongYear if clock.year < 0 => write!(out, "-{:04}", -clock.year),
        Element::LongYear => write!(out, "{:04}", clock.year),
        Element::Year => write!(out, "{:02}", clock.year.max(0) % 100),
        Element::UpperMeridiem => write!(out, "{}", meridiem(["AM", "PM"])),
        Element::LowerMeridiem => write!(out, "{}", meridiem(["am", "pm"])),
        Element::ZoneName if clock.abbreviation.is_empty() => {
            let plain = Offset {
                z_for_utc: false,
                colons: false,
                minutes: true,
                seconds: false,
            };
            return push_offset(out, clock.offset, plain);
        }
        Element::ZoneName => write!(out, "{}", clock.abbreviation),
        Element::Offset(offset) => return push_offset(out, clock.offset, offset),
        Element::Fraction(digits) => {
            let fraction = fraction(clock.nanosecond, digits);
            write!(out, "{}{fraction}", &spelling[..1])
        }
        Element::TrimmedFraction(digits) => {
            let fraction = fraction(clock.nanosecond, digits);
            match fraction.trim_end_matches('0') {
                "" => Ok(()),
                trimmed => write!(out, "{}{trimmed}", &spelling[..1]),
            }
        }
    };
}

/// The first digits of a fraction of a second.
fn fraction(nanosecond: u32, digits: usize) -> String {
    let mut text = format!("{nanosecond:09}");
    text.truncate(digits);
    while text.len() < digits {
        text.push('0');
    }
    text
}

fn push_offset(out: &mut String, seconds: i32, offset: Offset) {
    if offset.z_for_utc && seconds == 0 {
        out.push('Z');
        return;
    }
    let minutes = seconds / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    let colon = if offset.colons { ":" } else { "" };
    let _ = write!(out, "{sign}{:02}", minutes.abs() / 60);
    if offset.minutes {
        let _ = write!(out, "{colon}{:02}", minutes.abs() % 60);
    }
    if offset.seconds {
        let _ = write!(out, "{colon}{:02}", seconds.abs() % 60);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Zone;

    #[test]
    fn every_element_prints_its_part() {
        let time = Time {
            nanoseconds: 1_139_180_645_123_456_000,
            zone: Zone::Fixed(String::new(), -7 * 3600),
        };
        let check = |layout, expected| assert_eq!(format(&time, layout), expected, "{layout}");
        check(
            "Mon Jan _2 15:04:05 MST 2006",
            "Sun Feb  5 16:04:05 -0700 2006",
        );
        check("Monday, 02-Jan-06 3:4:5PM", "Sunday, 05-Feb-06 4:4:5PM");
        check(
            "2006-01-02T15:04:05.999999999Z07:00",
            "2006-02-05T16:04:05.123456-07:00",
        );
        check("05.000000 __2 002 _2006", "05.123456  36 036 _2006");
        check("Month 1 Januar Z07", "Month 2 Januar -07");
    }
}
