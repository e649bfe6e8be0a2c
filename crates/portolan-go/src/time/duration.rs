//! Durations as text, such as `1h30m` and `1.5s`.

use std::fmt::Write;
use std::time::Duration;

use super::quote;

/// A duration in nanoseconds from text; the error is Go's.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let shown = || quote(text);
    let invalid = || format!("time: invalid duration {}", shown());
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let (number, after) = decimal(rest).ok_or_else(invalid)?;
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", shown()));
        }
        let scale = scale_of(unit).ok_or_else(|| {
            let unit = quote(unit);
            format!("time: unknown unit {unit} in duration {}", shown())
        })?;
        total += number.nanoseconds(scale).ok_or_else(invalid)?;
        if total > 1 << 63 {
            return Err(invalid());
        }
        rest = after;
    }
    let signed = if negative { -total } else { total };
    i64::try_from(signed).map_err(|_| invalid())
}

/// A span of time in whole numbers of hours, minutes, seconds and milliseconds: `90s`, `10m`, `1h30m`. `None` for
/// everything else that [`parse_duration`] reads.
///
/// ```
/// use std::time::Duration;
///
/// use portolan_go::time::parse_span;
///
/// assert_eq!(parse_span("1h30m"), Some(Duration::from_secs(5_400)));
/// assert_eq!(parse_span("10"), None);
/// assert_eq!(parse_span("-1s"), None);
/// ```
pub fn parse_span(text: &str) -> Option<Duration> {
    let is_plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'h' | b'm' | b's');
    if text == "0" || !text.bytes().all(is_plain) {
        return None;
    }
    let nanoseconds = parse_duration(text).ok()?;
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

fn scale_of(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// A number with digits before or after its point.
struct Decimal<'t> {
    whole: &'t str,
    fraction: &'t str,
}

fn decimal(text: &str) -> Option<(Decimal<'_>, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, mut rest) = text.split_at(digits(text));
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        (fraction, rest) = after.split_at(digits(after));
    }
    let empty = whole.is_empty() && fraction.is_empty();
    (!empty).then_some((Decimal { whole, fraction }, rest))
}

impl Decimal<'_> {
    /// How many nanoseconds it is of a unit; fractions of one are cut. None when it is too large.
    fn nanoseconds(&self, scale: i128) -> Option<i128> {
        let whole = match self.whole {
            "" => 0,
            whole => whole
                .parse::<i128>()
                .ok()
                .filter(|whole| *whole <= 1 << 63)?,
        };
        // Digits beyond the eighteenth are less than a nanosecond of an hour.
        let fraction = &self.fraction[..self.fraction.len().min(18)];
        let part =
            fraction.parse::<i128>().unwrap_or(0) * scale / 10_i128.pow(fraction.len() as u32);
        Some(whole * scale + part)
    }
}

/// A duration as Go prints it: the largest unit first, fractions only of seconds and below.
pub fn print_duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    if total < 1_000_000_000 {
        let (unit, scale) = match total {
            0 => return "0s".to_owned(),
            1..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{sign}{}{unit}", with_fraction(total, scale));
    }
    let mut out = sign.to_owned();
    let (hours, minutes) = (total / 3_600_000_000_000, total / 60_000_000_000 % 60);
    // Writing to a string cannot fail.
    if hours > 0 {
        let _ = write!(out, "{hours}h");
    }
    if hours > 0 || minutes > 0 {
        let _ = write!(out, "{minutes}m");
    }
    let _ = write!(
        out,
        "{}s",
        with_fraction(total % 60_000_000_000, 1_000_000_000)
    );
    out
}

fn with_fraction(total: u64, scale: u64) -> String {
    let digits = scale.ilog10() as usize;
    let fraction = format!("{:0digits$}", total % scale);
    match fraction.trim_end_matches('0') {
        "" => (total / scale).to_string(),
        fraction => format!("{}.{fraction}", total / scale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed() {
        let cases = [
            ("1h30m", "1h30m0s"),
            ("-1.5h", "-1h30m0s"),
            ("1500ms", "1.5s"),
            (".5us", "500ns"),
            ("1.0000000001s", "1s"),
            ("0", "0s"),
            ("+90s", "1m30s"),
        ];
        for (text, printed) in cases {
            assert_eq!(
                parse_duration(text).map(print_duration).as_deref(),
                Ok(printed),
                "{text}"
            );
        }
    }

    #[test]
    fn spans_are_whole_numbers_with_units() {
        let milliseconds = |text| parse_span(text).map(|span| span.as_millis());
        for (text, expected) in [
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("2s5ms", 2_005),
            ("0s", 0),
        ] {
            assert_eq!(milliseconds(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "0",
            "10",
            "-1s",
            "+1s",
            "1.5h",
            "1d",
            "1us",
            "s",
            "99999999999h",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }

    #[test]
    fn errors_are_those_of_go() {
        let cases = [
            ("", r#"time: invalid duration """#),
            ("3", r#"time: missing unit in duration "3""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            (".s", r#"time: invalid duration ".s""#),
            ("3000000h", r#"time: invalid duration "3000000h""#),
        ];
        for (text, error) in cases {
            assert_eq!(parse_duration(text), Err(error.to_owned()));
        }
    }
}
