//! Spans of time as users write them: `90s`, `10m`, `1h30m`.

use std::time::Duration;

/// Reads a span of time in Go's notation: whole numbers with the units `h`, `m`, `s` and `ms`, largest first by custom.
///
/// # Errors
/// A sentence that says what is wrong.
///
/// ```
/// use portolan_kinds::read_span;
///
/// assert_eq!(read_span("1h30m")?.as_secs(), 5_400);
/// assert!(read_span("10").is_err());
/// # Ok::<(), String>(())
/// ```
pub fn read_span(text: &str) -> Result<Duration, String> {
    let refused = || "must be a span of time such as `90s`, `10m` or `1h30m`".to_owned();
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit());
        let (number, after) = rest.split_at(digits.ok_or_else(refused)?);
        let number: u32 = number.parse().map_err(|_| refused())?;
        let (unit, length) = match after.as_bytes() {
            [b'm', b's', ..] => (Duration::from_millis(1), 2),
            [b's', ..] => (Duration::from_secs(1), 1),
            [b'm', ..] => (Duration::from_mins(1), 1),
            [b'h', ..] => (Duration::from_hours(1), 1),
            _ => return Err(refused()),
        };
        let part = unit.checked_mul(number).ok_or_else(refused)?;
        total = total.checked_add(part).ok_or_else(refused)?;
        rest = &after[length..];
    }
    if text.is_empty() {
        Err(refused())
    } else {
        Ok(total)
    }
}
