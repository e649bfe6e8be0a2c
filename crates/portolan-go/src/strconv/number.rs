//! Numbers from text.

/// An integer in a base; base 0 takes it from the prefix (`0x`, `0o`, `0b`, `0`) and allows `_` between digits.
pub fn parse_int(text: &str, base: u32) -> Option<i64> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = parse_uint(digits, base)?;
    if is_negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// An unsigned integer in a base, without a sign; base 0 as for [`parse_int`].
pub fn parse_uint(text: &str, base: u32) -> Option<u64> {
    let (base, digits) = match base {
        0 => prefixed(text)?,
        _ => (base, text.to_owned()),
    };
    // Rust would take a sign here.
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(&digits, base).ok()
}

/// What `strconv.Atoi` returns beside its error, which sprig drops: the nearest integer where the digits are too many,
/// zero where they are none. It stops at the digit that is too much and sees nothing behind it.
pub fn saturating_int(text: &str) -> i64 {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let mut magnitude = 0_u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return 0;
        }
        let next = magnitude.checked_mul(10);
        match next.and_then(|next| next.checked_add(u64::from(digit - b'0'))) {
            Some(next) => magnitude = next,
            None => return if negative { i64::MIN } else { i64::MAX },
        }
    }
    match (negative, i64::try_from(magnitude)) {
        (false, Ok(number)) => number,
        (false, Err(_)) => i64::MAX,
        (true, Ok(number)) => -number,
        (true, Err(_)) => i64::MIN,
    }
}

/// The base that a prefix names, and the digits without underscores.
fn prefixed(digits: &str) -> Option<(u32, String)> {
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let (base, rest) = match prefix.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    // An underscore must stand between digits; the base's prefix counts as one.
    let prefix_counts = rest.len() < digits.len();
    let misplaced =
        rest.ends_with('_') || rest.contains("__") || (!prefix_counts && rest.starts_with('_'));
    (!misplaced).then(|| (base, rest.replace('_', "")))
}

/// A float; hexadecimal ones need a `p` exponent, and what is too large is an error.
pub fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with("0x") || unsigned.starts_with("0X") {
        let value = hexadecimal(&unsigned[2..])?;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    let joined = without_underscores(unsigned)?;
    let value: f64 = joined.parse().ok()?;
    // Rust would take another sign here.
    let value = if joined.starts_with(['+', '-']) {
        return None;
    } else {
        value
    };
    let value = if text.starts_with('-') { -value } else { value };
    let named = unsigned.starts_with(|c: char| c.is_ascii_alphabetic());
    (value.is_finite() || named).then_some(value)
}

/// Digits without the underscores between them; none where one stands elsewhere.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |index: Option<usize>| {
        index
            .and_then(|index| bytes.get(index))
            .is_some_and(u8::is_ascii_digit)
    };
    let misplaced = |(index, byte): (usize, &u8)| {
        *byte == b'_' && !(digit(index.checked_sub(1)) && digit(Some(index + 1)))
    };
    (!bytes.iter().enumerate().any(misplaced)).then(|| text.replace('_', ""))
}

fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let mantissa = mantissa.replace('_', "");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((&mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() {
        return None;
    }
    // Digits beyond the 64th bit only matter for rounding, where one bit stands for them.
    let mut value = 0_u64;
    let mut dropped = 0;
    for digit in digits.chars() {
        let digit = u64::from(digit.to_digit(16)?);
        if value >> 60 == 0 {
            value = value << 4 | digit;
        } else {
            value |= u64::from(digit != 0);
            dropped += 4;
        }
    }
    let exponent = exponent.replace('_', "");
    let exponent = exponent.parse::<i32>().ok()?.clamp(-100_000, 100_000);
    let exponent = exponent + dropped - 4 * fraction.len().min(100_000) as i32;
    let scaled = (value as f64) * 2_f64.powi(exponent);
    scaled.is_finite().then_some(scaled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_follow_their_prefix_in_base_zero() {
        let cases = [
            ("010", 8),
            ("0x10", 16),
            ("1_000", 1000),
            ("0b11", 3),
            ("0o7", 7),
            ("-0", 0),
        ];
        for (text, value) in cases {
            assert_eq!(parse_int(text, 0), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "3.7",
            "1e3",
            " 5 ",
            "1__0",
            "_1",
            "1_",
            "08",
            "++1",
            "9223372036854775808",
        ] {
            assert_eq!(parse_int(text, 0), None, "{text}");
        }
        assert_eq!(parse_int("-9223372036854775808", 0), Some(i64::MIN));
        assert_eq!(parse_int("010", 10), Some(10));
    }

    #[test]
    fn floats_out_of_range_are_errors() {
        assert_eq!(parse_float("1e400"), None);
        assert_eq!(parse_float("0x1p4"), Some(16.0));
        assert_eq!(parse_float("-0x.8p1"), Some(-1.0));
        assert_eq!(parse_float("0x10"), None);
        assert!(parse_float("nan").is_some_and(f64::is_nan));
    }
}
