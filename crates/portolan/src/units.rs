//! Ages and sizes as users write and read them.

use std::time::Duration;

/// `1.5 MB`
pub(crate) fn shown_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!(
        "{value:.1} {}",
        UNITS.get(unit).copied().unwrap_or_default()
    )
}

/// Reads `30d`, `12h`, `15m` or `20s`.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is not an age such as `12h` or `30d`");
    let (number, unit) = split_unit(text);
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    let seconds = number.checked_mul(seconds).ok_or_else(bad)?;
    Ok(Duration::from_secs(seconds))
}

/// Reads `500MB`, `2GiB` or plain bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a size such as `500MB` or `2GiB`");
    let (number, unit) = split_unit(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(factor).ok_or_else(bad)
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_read_with_their_units() {
        assert_eq!(age("30d"), Ok(Duration::from_hours(30 * 24)));
        assert_eq!(age("12h"), Ok(Duration::from_hours(12)));
        assert_eq!(size("500MB"), Ok(500_000_000));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("17"), Ok(17));
        for bad in ["", "d", "3w", "-1d", "99999999999999999999d"] {
            assert!(age(bad).is_err(), "{bad}");
        }
        assert!(size("2 GB").is_err() && size("99999999999GiB").is_err());
    }

    #[test]
    fn sizes_are_shown_short() {
        assert_eq!(shown_size(999), "999 B");
        assert_eq!(shown_size(1_500_000), "1.5 MB");
    }
}
