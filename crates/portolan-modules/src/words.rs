//! Small texts: durations as people write them, and the known word nearest to a misspelt one.

use std::time::Duration;

/// The known name that is spelled nearly like this one; `None` if none is.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    portolan_object::similar(name, known, |candidate| candidate)
}

/// Reads `500ms`, `90s`, `10m` or `1h30m`; `None` for any other text.
pub fn read_duration(text: &str) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    let mut rest = text;
    if text.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let units = after.find(|letter: char| letter.is_ascii_digit());
        let (unit, after) = after.split_at(units.unwrap_or(after.len()));
        let part = match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.checked_mul(60)?),
            "h" => Duration::from_secs(number.checked_mul(3_600)?),
            "d" => Duration::from_secs(number.checked_mul(86_400)?),
            _ => return None,
        };
        sum = sum.checked_add(part)?;
        rest = after;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(
                read_duration(text),
                expected.map(Duration::from_millis),
                "{text}"
            );
        };
        check("90s", Some(90_000));
        check("1h30m", Some(5_400_000));
        check("250ms", Some(250));
        check("2d", Some(172_800_000));
        check("0s", Some(0));
        for refused in [
            "",
            "90",
            "s",
            "1.5h",
            "-1s",
            "5 s",
            "99999999999999999999s",
            "1w",
        ] {
            check(refused, None);
        }
    }

    #[test]
    fn the_nearest_word_differs_in_few_letters() {
        assert_eq!(nearest("presnt", ["absent", "present"]), Some("present"));
        assert_eq!(nearest("x", ["absent", "present"]), None);
    }
}
