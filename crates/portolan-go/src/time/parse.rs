//! Times from text, by a layout.

use super::calendar::{MONTHS, WEEKDAYS, day_of, days_in};
use super::layout::{Element, Offset, Piece, next_piece};
use super::{SECOND, Time, Zone, quote};

/// Reads a time; what the layout does not name is that of the first moment of year zero, in UTC.
pub(super) fn parse(layout: &str, text: &str) -> Result<Time, String> {
    let mut fields = Fields::default();
    let (mut rest_of_layout, mut rest) = (layout, text);
    loop {
        let piece = next_piece(rest_of_layout);
        let cannot = |value: &str, element: &str| {
            let [text, layout, value, element] = [text, layout, value, element].map(quote);
            format!("parsing time {text} as {layout}: cannot parse {value} as {element}")
        };
        rest = skip(rest, piece.prefix).map_err(|at| cannot(at, piece.prefix))?;
        let Some((element, spelling)) = piece.element else {
            if rest.is_empty() {
                return fields.time().map_err(|problem| out_of_range(text, problem));
            }
            let rest = quote(rest);
            return Err(format!("parsing time {}: extra text: {rest}", quote(text)));
        };
        rest = match fields.take(element, rest, &piece) {
            Ok(rest) => rest,
            Err(Problem::Form) => return Err(cannot(rest, spelling)),
            Err(Problem::Range(part)) => return Err(out_of_range(text, part)),
        };
        rest_of_layout = piece.rest;
    }
}

fn out_of_range(text: &str, part: &str) -> String {
    format!("parsing time {}: {part} out of range", quote(text))
}

/// Why an element could not be read.
enum Problem {
    /// The text has not its form.
    Form,
    /// The text has its form, but this part is too large or too small.
    Range(&'static str),
}

type Rest<'t> = Result<&'t str, Problem>;

/// What has been read so far.
#[derive(Default)]
struct Fields {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanosecond: i64,
    afternoon: Option<bool>,
    /// The text says `Z` or `UTC`, which counts whatever else it says of the zone.
    is_utc: bool,
    /// The offset from UTC in seconds.
    offset: Option<i32>,
    /// The zone's short name.
    zone_name: Option<String>,
}

impl Fields {
    fn take<'t>(&mut self, element: Element, text: &'t str, piece: &Piece<'_>) -> Rest<'t> {
        match element {
            Element::LongMonth => take_name(&MONTHS, usize::MAX, text, &mut self.month),
            Element::ShortMonth => take_name(&MONTHS, 3, text, &mut self.month),
            Element::LongWeekday => take_name(&WEEKDAYS, usize::MAX, text, &mut None),
            Element::ShortWeekday => take_name(&WEEKDAYS, 3, text, &mut None),
            Element::NumericMonth | Element::ZeroMonth => {
                let (month, rest) = number(text, element == Element::ZeroMonth)?;
                self.month = Some(in_range(month, 1..=12, "month")?);
                Ok(rest)
            }
            Element::Day | Element::SpaceDay | Element::ZeroDay => {
                let text = match text.strip_prefix(' ') {
                    Some(text) if element == Element::SpaceDay => text,
                    _ => text,
                };
                let (day, rest) = number(text, element == Element::ZeroDay)?;
                self.day = Some(day);
                Ok(rest)
            }
            Element::SpaceYearDay | Element::ZeroYearDay => {
                let trimmed = match element {
                    Element::SpaceYearDay => text.trim_start_matches(' '),
                    _ => text,
                };
                let width = 3_usize.saturating_sub(text.len() - trimmed.len());
                let (day, rest) = digits(trimmed, width)?;
                self.year_day = Some(day);
                Ok(rest)
            }
            Element::LongYear => {
                let (year, rest) = digits(text, 4)?;
                self.year = year;
                Ok(rest)
            }
            Element::Year => {
                let (year, rest) = digits(text, 2)?;
                self.year = year + if year >= 69 { 1900 } else { 2000 };
                Ok(rest)
            }
            Element::Hour => {
                let (hour, rest) = number(text, false)?;
                self.hour = in_range(hour, 0..=23, "hour")?;
                Ok(rest)
            }
            Element::Hour12 | Element::ZeroHour12 => {
                let (hour, rest) = number(text, element == Element::ZeroHour12)?;
                self.hour = in_range(hour, 0..=12, "hour")?;
                Ok(rest)
            }
            Element::Minute | Element::ZeroMinute => {
                let (minute, rest) = number(text, element == Element::ZeroMinute)?;
                self.minute = in_range(minute, 0..=59, "minute")?;
                Ok(rest)
            }
            Element::Second | Element::ZeroSecond => self.take_second(element, text, piece),
            Element::UpperMeridiem => self.take_meridiem(["AM", "PM"], text),
            Element::LowerMeridiem => self.take_meridiem(["am", "pm"], text),
            Element::ZoneName => self.take_zone_name(text),
            Element::Offset(offset) => self.take_offset(offset, text),
            Element::Fraction(count) => self.take_fraction(text, count),
            Element::TrimmedFraction(_) => match fraction_length(text) {
                0 => Ok(text),
                count => self.take_fraction(text, count),
            },
        }
    }

    /// Seconds, and a fraction even where the layout has none.
    fn take_second<'t>(&mut self, element: Element, text: &'t str, piece: &Piece<'_>) -> Rest<'t> {
        let (second, rest) = number(text, element == Element::ZeroSecond)?;
        self.second = in_range(second, 0..=59, "second")?;
        let next = next_piece(piece.rest).element.map(|(element, _)| element);
        let named = matches!(
            next,
            Some(Element::Fraction(_) | Element::TrimmedFraction(_))
        );
        match fraction_length(rest) {
            count if count > 0 && !named => self.take_fraction(rest, count),
            _ => Ok(rest),
        }
    }

    fn take_fraction<'t>(&mut self, text: &'t str, count: usize) -> Rest<'t> {
        let fraction = text.strip_prefix(['.', ',']).ok_or(Problem::Form)?;
        let digits = fraction.get(..count).ok_or(Problem::Form)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Problem::Form);
        }
        let padded = format!("{digits:0<9.9}");
        self.nanosecond = padded.parse().map_err(|_| Problem::Form)?;
        Ok(&fraction[count..])
    }

    fn take_meridiem<'t>(&mut self, names: [&str; 2], text: &'t str) -> Rest<'t> {
        for (afternoon, name) in [false, true].into_iter().zip(names) {
            if let Some(rest) = text.strip_prefix(name) {
                self.afternoon = Some(afternoon);
                return Ok(rest);
            }
        }
        Err(Problem::Form)
    }

    fn take_zone_name<'t>(&mut self, text: &'t str) -> Rest<'t> {
        if let Some(rest) = text.strip_prefix("UTC") {
            self.is_utc = true;
            return Ok(rest);
        }
        let length = zone_name_length(text).ok_or(Problem::Form)?;
        self.zone_name = Some(text[..length].to_owned());
        Ok(&text[length..])
    }

    fn take_offset<'t>(&mut self, offset: Offset, text: &'t str) -> Rest<'t> {
        if offset.z_for_utc
            && let Some(rest) = text.strip_prefix('Z')
        {
            self.is_utc = true;
            return Ok(rest);
        }
        let (sign, mut rest) = match text.as_bytes().first() {
            Some(b'+') => (1, &text[1..]),
            Some(b'-') => (-1, &text[1..]),
            _ => return Err(Problem::Form),
        };
        let mut seconds = 0;
        let parts = [
            (true, 3600, 24, "time zone offset hour"),
            (offset.minutes, 60, 60, "time zone offset minute"),
            (offset.seconds, 1, 60, "time zone offset second"),
        ];
        for (index, (present, unit, most, name)) in parts.into_iter().enumerate() {
            if !present {
                continue;
            }
            if index > 0 && offset.colons {
                rest = rest.strip_prefix(':').ok_or(Problem::Form)?;
            }
            let (value, after) = digits(rest, 2)?;
            seconds += in_range(value, 0..=most, name)? * unit;
            rest = after;
        }
        self.offset = Some(sign * seconds as i32);
        Ok(rest)
    }

    /// The moment that the fields name.
    fn time(self) -> Result<Time, &'static str> {
        let hour = match self.afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let day = self.day_number()?;
        let seconds = day * 86_400 + hour * 3600 + self.minute * 60 + self.second;
        let (zone, offset) = match (self.offset, self.zone_name) {
            _ if self.is_utc => (Zone::Utc, 0),
            (None | Some(0), None) => (Zone::Utc, 0),
            // The offset says when it is, the name only how that is shown.
            (Some(offset), name) => (Zone::Fixed(name.unwrap_or_default(), offset), offset),
            (None, Some(name)) => {
                // An unknown name says nothing about its offset, unless it is written into it.
                let hours = name
                    .strip_prefix("GMT")
                    .and_then(|hours| hours.parse::<i32>().ok());
                let offset = hours.unwrap_or(0) * 3600;
                (Zone::Fixed(name, offset), 0)
            }
        };
        let nanoseconds =
            i128::from(seconds - i64::from(offset)) * SECOND + i128::from(self.nanosecond);
        Ok(Time { nanoseconds, zone })
    }

    fn day_number(&self) -> Result<i64, &'static str> {
        if let Some(year_day) = self.year_day {
            let first = day_of(self.year, 1, 1);
            if !(1..=day_of(self.year + 1, 1, 1) - first).contains(&year_day) {
                return Err("day-of-year");
            }
            return Ok(first + year_day - 1);
        }
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        if !(1..=days_in(self.year, month)).contains(&day) {
            return Err("day");
        }
        Ok(day_of(self.year, month, day))
    }
}

fn in_range(
    value: i64,
    range: std::ops::RangeInclusive<i64>,
    part: &'static str,
) -> Result<i64, Problem> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(Problem::Range(part))
    }
}

/// Takes a layout's own text off; a space stands for any number of spaces. The error is where it fails.
fn skip<'t>(text: &'t str, prefix: &str) -> Result<&'t str, &'t str> {
    let (mut text, mut prefix) = (text, prefix);
    while let Some(expected) = prefix.chars().next() {
        if expected == ' ' {
            if !text.is_empty() && !text.starts_with(' ') {
                return Err(text);
            }
            prefix = prefix.trim_start_matches(' ');
            text = text.trim_start_matches(' ');
            continue;
        }
        text = text.strip_prefix(expected).ok_or(text)?;
        prefix = &prefix[expected.len_utf8()..];
    }
    Ok(text)
}

/// One or two digits; exactly two where that is fixed.
fn number(text: &str, fixed: bool) -> Result<(i64, &str), Problem> {
    let count = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    match count {
        0 => Err(Problem::Form),
        1 if fixed => Err(Problem::Form),
        _ => digits(text, count),
    }
}

/// Exactly so many digits.
fn digits(text: &str, count: usize) -> Result<(i64, &str), Problem> {
    let digits = text.get(..count).ok_or(Problem::Form)?;
    if count == 0 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::Form);
    }
    let value = digits.parse().map_err(|_| Problem::Form)?;
    Ok((value, &text[count..]))
}

/// A month or weekday in any case, by its whole name or its first letters.
fn take_name<'t>(
    names: &[&str],
    letters: usize,
    text: &'t str,
    field: &mut Option<i64>,
) -> Rest<'t> {
    for (index, name) in names.iter().enumerate() {
        let name = &name[..name.len().min(letters)];
        let head = text.get(..name.len());
        if head.is_some_and(|head| head.eq_ignore_ascii_case(name)) {
            *field = Some(index as i64 + 1);
            return Ok(&text[name.len()..]);
        }
    }
    Err(Problem::Form)
}

/// How many digits follow a `.` or `,` at the start.
fn fraction_length(text: &str) -> usize {
    text.strip_prefix(['.', ',']).map_or(0, |fraction| {
        fraction.bytes().take_while(u8::is_ascii_digit).count()
    })
}

/// How long a zone's short name is: three to five capitals, `GMT+3`, or an offset in place of a name.
fn zone_name_length(text: &str) -> Option<usize> {
    for special in ["ChST", "MeST"] {
        if text.starts_with(special) {
            return Some(special.len());
        }
    }
    if let Some(rest) = text.strip_prefix("GMT") {
        return Some(3 + signed_hours(rest));
    }
    if text.starts_with(['+', '-']) {
        return Some(signed_hours(text)).filter(|length| *length > 0);
    }
    let capitals = text
        .bytes()
        .take(6)
        .take_while(u8::is_ascii_uppercase)
        .count();
    match capitals {
        3 => Some(3),
        4 if text.as_bytes()[3] == b'T' || text.starts_with("WITA") => Some(4),
        5 if text.as_bytes()[4] == b'T' => Some(5),
        _ => None,
    }
}

/// The length of a sign and hours from -23 to 23; nothing when there are none.
fn signed_hours(text: &str) -> usize {
    let Some(digits) = text.strip_prefix(['+', '-']) else {
        return 0;
    };
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    match digits[..count].parse::<u32>() {
        Ok(0..=23) => count + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(layout: &str, text: &str, expected: &str) {
        let answer = match parse(layout, text) {
            Ok(time) => time.format("2006-01-02T15:04:05.999999999 -0700 MST"),
            Err(error) => error,
        };
        assert_eq!(answer, expected, "{text}");
    }

    #[test]
    fn times_are_read_by_their_layout() {
        check("2006-01-02", "2024-02-29", "2024-02-29T00:00:00 +0000 UTC");
        check(
            "2006-01-02T15:04:05Z07:00",
            "2024-02-29T13:04:05.25+01:30",
            "2024-02-29T13:04:05.25 +0130 +0130",
        );
        check(
            "Mon Jan _2 3:04PM 2006",
            "tue feb  6 9:05PM 2024",
            "2024-02-06T21:05:00 +0000 UTC",
        );
        check("2006 002", "2024 366", "2024-12-31T00:00:00 +0000 UTC");
        check("15:04 MST", "10:20 CEST", "0000-01-01T10:20:00 +0000 CEST");
    }

    #[test]
    fn errors_are_those_of_go() {
        check(
            "2006-01-02",
            "bad",
            r#"parsing time "bad" as "2006-01-02": cannot parse "bad" as "2006""#,
        );
        check(
            "2006-01-02",
            "2024-13-01",
            r#"parsing time "2024-13-01": month out of range"#,
        );
        check(
            "2006-01-02",
            "2023-02-29",
            r#"parsing time "2023-02-29": day out of range"#,
        );
        check(
            "2006-01-02",
            "2024-01-02x",
            r#"parsing time "2024-01-02x": extra text: "x""#,
        );
        check(
            "2006-01",
            "2024/01",
            r#"parsing time "2024/01" as "2006-01": cannot parse "/01" as "-""#,
        );
    }
}
