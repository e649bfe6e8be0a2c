//! Formats of days, times and spans of time.

use super::{digits, ensure, quoted, quoted_char, wrong};

pub(super) fn date(text: &str) -> Result<(), String> {
    let fits = matches!(text.as_bytes(), [_, _, _, _, b'-', _, _, b'-', _, _]);
    let number = |from: usize, to: usize| {
        let part = text
            .get(from..to)
            .filter(|part| digits(part) == to - from)?;
        part.parse::<u32>().ok()
    };
    let parts = (number(0, 4), number(5, 7), number(8, 10));
    let (Some(year), Some(month), Some(day), true) = (parts.0, parts.1, parts.2, fits) else {
        let text = quoted(text);
        return wrong(format!(
            "parsing time {text} as \"2006-01-02\": cannot parse {text} as \"2006\""
        ));
    };
    if !(1..=12).contains(&month) {
        return wrong(format!("parsing time {}: month out of range", quoted(text)));
    }
    if !(1..=days_of(year, month)).contains(&day) {
        return wrong(format!("parsing time {}: day out of range", quoted(text)));
    }
    Ok(())
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 31,
    }
}

pub(super) fn clock(text: &str) -> Result<(), String> {
    ensure(text.len() >= 9, "less than 9 characters long")?;
    let bytes = text.as_bytes();
    ensure(
        bytes.get(2) == Some(&b':') && bytes.get(5) == Some(&b':'),
        "missing colon in correct place",
    )?;
    let (time, rest) = text.split_at_checked(8).unwrap_or((text, ""));
    let numbers: Vec<_> = time.split(':').map(str::parse::<i64>).collect();
    let [Ok(hour), Ok(minute), Ok(second)] = numbers.as_slice() else {
        return wrong("invalid hour/min/sec");
    };
    ensure(
        *hour >= 0 && *minute >= 0 && *second >= 0,
        "non-positive hour/min/sec",
    )?;
    ensure(
        *hour <= 23 && *minute <= 59 && *second <= 60,
        "hour/min/sec out of range",
    )?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let count = digits(fraction);
            ensure(count > 0, "no digits in second fraction")?;
            fraction.get(count..).unwrap_or_default()
        }
        None => rest,
    };
    let minutes = hour * 60 + minute - offset(zone)?;
    let in_universal_time = minutes.rem_euclid(24 * 60);
    ensure(
        *second < 60 || in_universal_time == 23 * 60 + 59,
        "invalid leap second",
    )
}

/// Minutes east of Greenwich.
fn offset(zone: &str) -> Result<i64, String> {
    if zone.eq_ignore_ascii_case("z") {
        return Ok(0);
    }
    ensure(zone.len() == 6, "offset must be 6 characters long")?;
    let sign = match zone.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return wrong("offset must begin with plus/minus"),
    };
    let zone = zone.get(1..).unwrap_or_default();
    ensure(
        zone.as_bytes().get(2) == Some(&b':'),
        "missing colon in offset in correct place",
    )?;
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, ""));
    let (Ok(hours), Ok(minutes)) = (hours.parse::<i64>(), minutes.parse::<i64>()) else {
        return wrong("invalid hour/min in offset");
    };
    ensure(
        hours >= 0 && minutes >= 0,
        "non-positive hour/min in offset",
    )?;
    ensure(
        hours <= 23 && minutes <= 59,
        "hour/min in offset out of range",
    )?;
    Ok(sign * (hours * 60 + minutes))
}

pub(super) fn date_time(text: &str) -> Result<(), String> {
    ensure(text.len() >= 20, "less than 20 characters long")?;
    ensure(
        matches!(text.as_bytes().get(10), Some(b't' | b'T')),
        "11th character must be t or T",
    )?;
    let (day, rest) = text.split_at_checked(10).unwrap_or((text, ""));
    date(day).map_err(|error| format!("invalid date element: {error}"))?;
    clock(rest.get(1..).unwrap_or_default())
        .map_err(|error| format!("invalid time element: {error}"))
}

pub(super) fn duration(text: &str) -> Result<(), String> {
    let Some(text) = text.strip_prefix('P') else {
        return wrong("must start with P");
    };
    ensure(!text.is_empty(), "nothing after P")?;
    if let Some(weeks) = text.strip_suffix('W') {
        ensure(!weeks.is_empty(), "no number in week")?;
        return ensure(digits(weeks) == weeks.len(), "invalid week");
    }
    for (index, part) in text.split('T').enumerate() {
        ensure(index == 0 || !part.is_empty(), "no time elements")?;
        let Some(units) = ["YMD", "HMS"].get(index) else {
            return wrong("more than one T");
        };
        elements(part, units)?;
    }
    Ok(())
}

/// Numbers with units, in the order of the units.
fn elements(part: &str, units: &str) -> Result<(), String> {
    let mut left = units;
    let mut rest = part;
    while !rest.is_empty() {
        let count = digits(rest);
        ensure(count > 0, "missing number")?;
        rest = rest.get(count..).unwrap_or_default();
        let Some(unit) = rest.chars().next() else {
            return wrong("missing unit");
        };
        let Some(at) = left.find(unit) else {
            let what = if units.contains(unit) {
                format!("unit {} out of order", quoted_char(unit))
            } else {
                format!("invalid unit {}", quoted_char(unit))
            };
            return wrong(what);
        };
        left = left.get(at + 1..).unwrap_or_default();
        rest = rest.get(unit.len_utf8()..).unwrap_or_default();
    }
    Ok(())
}

pub(super) fn period(text: &str) -> Result<(), String> {
    let Some((start, end)) = text.split_once('/') else {
        return wrong("missing slash");
    };
    let side = |text: &str, name: &str, is_duration: bool| {
        let (checked, kind) = if is_duration {
            (duration(text), "duration")
        } else {
            (date_time(text), "date-time")
        };
        checked.map_err(|error| format!("invalid {name} {kind}: {error}"))
    };
    let starts_with_duration = start.starts_with('P');
    side(start, "start", starts_with_duration)?;
    side(end, "end", !starts_with_duration && end.starts_with('P'))
}
