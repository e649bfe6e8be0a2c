//! Dates and times: which texts Go reads as one, and how it prints them.

use std::fmt::Write;

/// A point in time as it was spelled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Timestamp {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    nanosecond: u32,
    /// Minutes east of UTC.
    offset: i32,
}

/// What is left of a text while it is read.
struct Rest<'t>(&'t [u8]);

/// Reads `2001-12-14`, `2001-12-14T21:59:43.10-05:00` (also with `t`) or `2001-12-14 21:59:43.10`.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let year_digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if year_digits != 4 || bytes.get(4) != Some(&b'-') {
        return None;
    }
    let mut rest = Rest(&bytes[5..]);
    let year = text[..4].parse().ok()?;
    let month = rest.number(1, 12)?;
    rest.literal(b'-')?;
    let day = rest.number(1, days_in(month, year))?;
    let mut stamp = Timestamp {
        year,
        month,
        day,
        hour: 0,
        minute: 0,
        second: 0,
        nanosecond: 0,
        offset: 0,
    };
    let zoned = match rest.0.first() {
        None => return Some(stamp),
        Some(b'T' | b't') => {
            rest.0 = &rest.0[1..];
            true
        }
        Some(b' ') => {
            rest.skip_spaces();
            false
        }
        _ => return None,
    };
    rest.time(&mut stamp)?;
    if zoned {
        stamp.offset = rest.zone()?;
    }
    rest.0.is_empty().then_some(stamp)
}

impl Rest<'_> {
    fn digit(&self, at: usize) -> Option<u32> {
        let byte = self.0.get(at).filter(|byte| byte.is_ascii_digit())?;
        Some(u32::from(byte - b'0'))
    }

    /// One or two digits.
    fn number(&mut self, least: u32, most: u32) -> Option<u32> {
        let first = self.digit(0)?;
        let (value, length) = match self.digit(1) {
            Some(second) => (first * 10 + second, 2),
            None => (first, 1),
        };
        self.0 = &self.0[length..];
        (least..=most).contains(&value).then_some(value)
    }

    fn two_digits(&mut self, most: u32) -> Option<u32> {
        self.digit(1)?;
        self.number(0, most)
    }

    fn literal(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        (*first == byte).then_some(())
    }

    fn skip_spaces(&mut self) {
        let spaces = self.0.iter().take_while(|byte| **byte == b' ').count();
        self.0 = &self.0[spaces..];
    }

    fn time(&mut self, stamp: &mut Timestamp) -> Option<()> {
        stamp.hour = self.number(0, 23)?;
        self.literal(b':')?;
        stamp.minute = self.number(0, 59)?;
        self.literal(b':')?;
        stamp.second = self.number(0, 59)?;
        if matches!(self.0.first(), Some(b'.' | b',')) && self.digit(1).is_some() {
            self.0 = &self.0[1..];
            stamp.nanosecond = self.fraction();
        }
        Some(())
    }

    fn fraction(&mut self) -> u32 {
        let length = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        let nine = digits
            .iter()
            .copied()
            .chain(std::iter::repeat(b'0'))
            .take(9);
        nine.fold(0, |value, digit| value * 10 + u32::from(digit - b'0'))
    }

    fn zone(&mut self) -> Option<i32> {
        let (sign, rest) = self.0.split_first()?;
        self.0 = rest;
        let sign = match sign {
            b'Z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = self.two_digits(24)?;
        self.literal(b':')?;
        let minutes = self.two_digits(60)?;
        Some(sign * (hours * 60 + minutes) as i32)
    }
}

impl Timestamp {
    /// Prints the time as Go's JSON does; `None` for an offset of a day or more, which JSON refuses.
    pub(crate) fn rfc3339(&self) -> Option<String> {
        let mut out = String::new();
        let _ = write!(
            out,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            self.year, self.month, self.day, self.hour, self.minute, self.second
        );
        if self.nanosecond > 0 {
            let digits = format!("{:09}", self.nanosecond);
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
        if self.offset == 0 {
            out.push('Z');
        } else {
            let sign = if self.offset < 0 { '-' } else { '+' };
            let minutes = self.offset.abs();
            let _ = write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
        (self.offset.abs() < 24 * 60).then_some(out)
    }
}

fn days_in(month: u32, year: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
