//! Numbers: how Go reads them from text, and prints floats.

use std::fmt::Write;

use crate::value::node::{Scalar, Tag};

/// A number as Go holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// A whole number that only fits without a sign.
    Uint(u64),
    /// Any other number; also NaN and the infinities.
    Float(f64),
}

impl Number {
    /// The number as a float, which is how Helm sees every number.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Uint(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// The number a scalar stands for; `None` when its tag is no number's or its text does not fit.
pub(crate) fn of(scalar: &Scalar) -> Option<Number> {
    match (&scalar.tag, parse(&scalar.text)?) {
        (Tag::Int, Number::Float(_)) => None,
        (Tag::Int, whole) => Some(whole),
        (Tag::Float, number) => Some(Number::Float(number.as_f64())),
        _ => None,
    }
}

/// Below it every whole number is a float of its own.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Reads a number as Go does, underscores and bases included.
pub(crate) fn parse(text: &str) -> Option<Number> {
    match text.as_bytes() {
        bytes if is_short_decimal(bytes) => text.parse().ok().map(Number::Int),
        [b'.', ..] => parse_dotted(text),
        [b'+' | b'-' | b'0'..=b'9', ..] => parse_signed(text),
        _ => None,
    }
}

/// Whether a text is a whole number as it is printed too, and surely not too long to be one.
pub(crate) fn is_short_decimal(text: &[u8]) -> bool {
    match text {
        [b'1'..=b'9', rest @ ..] => rest.len() < 15 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn parse_signed(text: &str) -> Option<Number> {
    match text {
        "+.inf" | "+.Inf" | "+.INF" => return Some(Number::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => return Some(Number::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    let stripped;
    let digits = if text.contains('_') {
        stripped = text.replace('_', "");
        stripped.as_str()
    } else {
        text
    };
    parse_int(digits)
        .or_else(|| parse_decimal(digits).map(Number::Float))
        .or_else(|| parse_prefixed_sign(digits))
}

fn parse_dotted(text: &str) -> Option<Number> {
    let value = match text {
        ".nan" | ".NaN" | ".NAN" => f64::NAN,
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        _ if text.contains('_') && !underscores_separate_digits(text) => return None,
        _ => parse_decimal(&text.replace('_', ""))?,
    };
    Some(Number::Float(value))
}

fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    (0..bytes.len())
        .filter(|&at| bytes[at] == b'_')
        .all(|at| digit(at.checked_sub(1)) && digit(Some(at + 1)))
}

/// Go's `ParseInt` and `ParseUint` with base 0: `0x`, `0o`, `0b` and a leading `0` choose the base.
fn parse_int(text: &str) -> Option<Number> {
    let (sign, digits) = split_sign(text);
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    from_radix(sign, digits, radix)
}

/// `0o-7`, which only v3 takes for a number.
pub(crate) fn is_octal_with_sign(text: &str) -> bool {
    let mut digits = text.bytes().filter(|byte| *byte != b'_');
    digits.next() == Some(b'0')
        && digits.next() == Some(b'o')
        && matches!(digits.next(), Some(b'+' | b'-'))
}

/// `0b-1` and `0o-7`: a prefix and then a sign, which Go takes by accident.
fn parse_prefixed_sign(text: &str) -> Option<Number> {
    let (radix, rest) = match text.get(..2)? {
        "0b" => (2, &text[2..]),
        "0o" => (8, &text[2..]),
        _ => return None,
    };
    let (sign, digits) = split_sign(rest);
    sign?;
    from_radix(sign, digits, radix)
}

fn split_sign(text: &str) -> (Option<bool>, &str) {
    match text.as_bytes() {
        [b'-', ..] => (Some(true), &text[1..]),
        [b'+', ..] => (Some(false), &text[1..]),
        _ => (None, text),
    }
}

fn from_radix(sign: Option<bool>, digits: &str, radix: u32) -> Option<Number> {
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    match sign {
        Some(true) if value <= 1 << 63 => Some(Number::Int((value as i64).wrapping_neg())),
        Some(true) => None,
        _ => match i64::try_from(value) {
            Ok(value) => Some(Number::Int(value)),
            Err(_) => sign.is_none().then_some(Number::Uint(value)),
        },
    }
}

/// A decimal float, unless it is out of range: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn parse_decimal(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(start);
    let mut at = whole;
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1);
        if whole == start && at == whole + 1 {
            return None;
        }
    } else if whole == start {
        return None;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let from = at + 1 + sign;
        at = digits(from);
        if at == from {
            return None;
        }
    }
    let value: f64 = (at == bytes.len()).then(|| text.parse().ok()).flatten()?;
    value.is_finite().then_some(value)
}

/// Prints a float as Go's YAML does: shortest digits, an exponent below 1e-4 and from 1e6 on.
pub(crate) fn write_yaml(out: &mut String, value: f64) {
    match special(value) {
        Some(word) => out.push_str(word),
        None => write_shortest(out, &shortest(value)),
    }
}

/// The shortest digits that stand for a float, as `d.ddde±x`.
fn shortest(value: f64) -> String {
    let digits = format!("{value:e}");
    even_of_two(value, &digits).unwrap_or(digits)
}

/// Of two digits that are equally near Go takes the even one: the neighbour of an odd one, when the float lies
/// half-way between them.
fn even_of_two(value: f64, digits: &str) -> Option<String> {
    /// Shorter digits never lie so.
    const LONG: usize = 16;
    let (mantissa, exponent) = digits.split_once('e')?;
    if mantissa.len() < LONG || !mantissa.ends_with(['1', '3', '5', '7', '9']) {
        return None;
    }
    let exact = format!("{value:.60e}");
    let (kept, rest) = exact.split_at_checked(mantissa.len())?;
    let (after_half, _) = rest.strip_prefix('5')?.split_once('e')?;
    let even = format!("{kept}e{exponent}");
    let is_half_way = after_half.bytes().all(|digit| digit == b'0');
    (is_half_way && even.parse() == Ok(value)).then_some(even)
}

/// The same with the digits of a 32-bit float, as sigs.k8s.io/yaml prints a key that is a float.
pub(crate) fn write_key(out: &mut String, value: f64) {
    let value = value as f32;
    match special(f64::from(value)) {
        Some(word) => out.push_str(word),
        None => write_shortest(out, &format!("{value:e}")),
    }
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some(".nan"),
        f64::INFINITY => Some(".inf"),
        f64::NEG_INFINITY => Some("-.inf"),
        _ => None,
    }
}

/// Rearranges `d.ddde±x` as `%g` does: an exponent when it is below -4 or above 5.
fn write_shortest(out: &mut String, scientific: &str) {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        out.push_str(scientific);
        return;
    };
    let power: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    out.push_str(sign);
    if !(-4..6).contains(&power) {
        out.push_str(mantissa);
        write_exponent(out, power);
        return;
    }
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    write_positional(out, &digits, power);
}

/// Rearranges `d.ddde±x` without an exponent.
fn write_plainly(out: &mut String, scientific: &str) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let digits = mantissa.trim_start_matches('-');
    out.push_str(&mantissa[..mantissa.len() - digits.len()]);
    write_positional(out, &digits.replace('.', ""), exponent.parse().unwrap_or(0));
}

fn write_exponent(out: &mut String, power: i32) {
    let sign = if power < 0 { '-' } else { '+' };
    // Writing to a string cannot fail.
    let _ = write!(out, "e{sign}{:02}", power.abs());
}

fn write_positional(out: &mut String, digits: &str, power: i32) {
    if power < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-power - 1) as usize));
        out.push_str(digits);
        return;
    }
    let whole = power as usize + 1;
    if digits.len() <= whole {
        out.push_str(digits);
        out.extend(std::iter::repeat_n('0', whole - digits.len()));
    } else {
        out.push_str(&digits[..whole]);
        out.push('.');
        out.push_str(&digits[whole..]);
    }
}

/// Prints a finite float as Go's JSON encoder does: an exponent below 1e-6 and from 1e21 on, without leading zeros.
pub(crate) fn write_json(out: &mut String, value: f64) {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let scientific = shortest(value);
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        out.push_str(mantissa);
        let sign = if exponent.starts_with('-') { "" } else { "+" };
        let _ = write!(out, "e{sign}{exponent}");
    } else if size < EXACT_WHOLE && value.trunc() == value {
        let _ = write!(out, "{value}");
    } else {
        write_plainly(out, &shortest(value));
    }
}

/// What a float is once it went through JSON and was read again: whole numbers become integers.
pub(crate) fn through_json(value: f64) -> Number {
    if value.trunc() == value && value.abs() < EXACT_WHOLE {
        return Number::Int(value as i64);
    }
    if value.abs() >= 1e21 || !value.is_finite() {
        return Number::Float(value);
    }
    let mut text = String::new();
    write_json(&mut text, value);
    parse(&text).unwrap_or(Number::Float(value))
}
