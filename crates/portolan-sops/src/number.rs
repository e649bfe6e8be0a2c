//! Numbers as Go reads and prints them, for the authentication code over all values.

/// A whole number in any of YAML's spellings.
pub(crate) fn int(text: &str) -> Option<i128> {
    let clean = text.replace('_', "");
    let (negative, digits) = match clean.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, clean.strip_prefix('+').unwrap_or(&clean)),
    };
    let value = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => i128::from_str_radix(&digits[2..], 16),
        [b'0', b'o' | b'O', ..] => i128::from_str_radix(&digits[2..], 8),
        [b'0', b'b' | b'B', ..] => i128::from_str_radix(&digits[2..], 2),
        [b'0', b'0'..=b'7', ..] => i128::from_str_radix(digits, 8),
        _ => digits.parse(),
    };
    value
        .ok()
        .map(|value| if negative { -value } else { value })
}

/// A float in any of YAML's spellings.
pub(crate) fn float(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        ".inf" | "+.inf" => Some(f64::INFINITY),
        "-.inf" => Some(f64::NEG_INFINITY),
        ".nan" => Some(f64::NAN),
        _ => text.replace('_', "").parse().ok(),
    }
}

/// As Go prints with `'f'` and the shortest precision: never an exponent.
pub(crate) fn fixed(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        format!("{value}")
    }
}

/// As Go prints with `'g'` and the shortest precision, which is how sops writes floats to YAML: with an exponent of at
/// least two digits below 1e-4 and from 1e+06 on.
pub(crate) fn general(value: f64) -> String {
    let scientific = format!("{value:e}");
    let exponent = scientific.split_once('e').and_then(|(digits, exponent)| {
        let exponent: i32 = exponent.parse().ok()?;
        (value.is_finite() && !(-4..6).contains(&exponent)).then_some((digits, exponent))
    });
    match exponent {
        Some((digits, exponent)) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None => fixed(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_in_every_spelling() {
        for (text, value) in [
            ("42", 42),
            ("-7", -7),
            ("0x1F", 31),
            ("010", 8),
            ("0b11", 3),
            ("1_000", 1000),
        ] {
            assert_eq!(int(text), Some(value), "{text}");
        }
        assert_eq!(int("é"), None);
        assert_eq!(int("0x"), None);
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        for (value, plain, short) in [
            (1.5, "1.5", "1.5"),
            (1000.0, "1000", "1000"),
            (1e6, "1000000", "1e+06"),
            (123_456_789.0, "123456789", "1.23456789e+08"),
            (0.00001, "0.00001", "1e-05"),
            (0.0, "0", "0"),
        ] {
            assert_eq!(
                (fixed(value).as_str(), general(value).as_str()),
                (plain, short)
            );
        }
    }
}
