//! Prints floats in Go's formats, from the exact digits that Rust's own formatting gives.

use std::fmt::Write;

/// Which floating point type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FloatKind {
    /// `float64`
    #[default]
    Float64,
    /// `float32`
    Float32,
}

/// The power of ten from which the shortest form has an exponent.
const SHORTEST_EXPONENT: i32 = 6;

/// The formats of `strconv.FormatFloat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatFormat {
    /// `%e`: one digit, a point, digits and an exponent.
    Exponent,
    /// `%f`: no exponent.
    Fixed,
    /// `%g`: `%e` for large exponents, `%f` otherwise.
    General,
    /// `%b`: a decimal mantissa and a binary exponent.
    Binary,
    /// `%x`: a hexadecimal mantissa and a binary exponent.
    Hexadecimal,
}

/// A float as `strconv.FormatFloat` writes it; without a precision, the shortest text that reads back the same.
pub fn format_float(
    value: f64,
    format: FloatFormat,
    precision: Option<usize>,
    kind: FloatKind,
) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match format {
        FloatFormat::Exponent => exponent(&digits(value, precision, kind)),
        FloatFormat::Fixed => match precision {
            Some(precision) => format!("{value:.precision$}"),
            None => fixed(&digits(value, None, kind)),
        },
        FloatFormat::General => general(value, precision, kind),
        FloatFormat::Binary => binary(value, kind),
        FloatFormat::Hexadecimal => hexadecimal(value, precision),
    }
}

/// A decimal: sign, digits without the point, and the power of ten of the first digit.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i32,
}

/// The digits of a value: `precision` after the first, or as many as are needed.
fn digits(value: f64, precision: Option<usize>, kind: FloatKind) -> Decimal {
    let text = match (precision, kind) {
        (Some(precision), _) => format!("{value:.precision$e}"),
        (None, FloatKind::Float64) => format!("{value:e}"),
        (None, FloatKind::Float32) => format!("{:e}", value as f32),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    Decimal {
        negative: mantissa.starts_with('-'),
        digits: mantissa.chars().filter(char::is_ascii_digit).collect(),
        exponent: exponent.parse().unwrap_or(0),
    }
}

fn general(value: f64, precision: Option<usize>, kind: FloatKind) -> String {
    let significant = precision.map(|precision| precision.max(1));
    let mut decimal = digits(value, significant.map(|digits| digits - 1), kind);
    let trimmed = decimal.digits.trim_end_matches('0').len().max(1);
    decimal.digits.truncate(trimmed);
    let limit = match significant {
        None => SHORTEST_EXPONENT,
        Some(digits)
            if digits > decimal.digits.len() && decimal.digits.len() as i32 > decimal.exponent =>
        {
            decimal.digits.len() as i32
        }
        Some(digits) => digits as i32,
    };
    if decimal.exponent < -4 || decimal.exponent >= limit {
        exponent(&decimal)
    } else {
        fixed(&decimal)
    }
}

fn exponent(decimal: &Decimal) -> String {
    let mut out = String::with_capacity(decimal.digits.len() + 8);
    if decimal.negative {
        out.push('-');
    }
    let (first, rest) = decimal.digits.split_at(1);
    out.push_str(first);
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    let sign = if decimal.exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{sign}{:02}", decimal.exponent.abs());
    out
}

fn fixed(decimal: &Decimal) -> String {
    let sign = if decimal.negative { "-" } else { "" };
    let digits = &decimal.digits;
    let Ok(whole) = usize::try_from(decimal.exponent + 1) else {
        let zeros = "0".repeat(decimal.exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{digits}");
    };
    if whole == 0 {
        return format!("{sign}0.{digits}");
    }
    if digits.len() <= whole {
        return format!("{sign}{digits}{}", "0".repeat(whole - digits.len()));
    }
    let (whole, fraction) = digits.split_at(whole);
    format!("{sign}{whole}.{fraction}")
}

/// The mantissa as an integer and the power of two it is multiplied by.
fn parts(value: f64, kind: FloatKind) -> (u64, i32) {
    match kind {
        FloatKind::Float64 => {
            let bits = value.to_bits();
            let exponent = ((bits >> 52) & 0x7ff) as i32;
            let mantissa = bits & ((1 << 52) - 1);
            match exponent {
                0 => (mantissa, -1074),
                _ => (mantissa | 1 << 52, exponent - 1075),
            }
        }
        FloatKind::Float32 => {
            let bits = (value as f32).to_bits();
            let exponent = ((bits >> 23) & 0xff) as i32;
            let mantissa = u64::from(bits & ((1 << 23) - 1));
            match exponent {
                0 => (mantissa, -149),
                _ => (mantissa | 1 << 23, exponent - 150),
            }
        }
    }
}

fn binary(value: f64, kind: FloatKind) -> String {
    let (mantissa, exponent) = parts(value, kind);
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{mantissa}p{exponent:+}")
}

fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (mut mantissa, mut exponent) = parts(value, FloatKind::Float64);
    if mantissa == 0 {
        let zeros = precision
            .filter(|&n| n > 0)
            .map_or(String::new(), |n| format!(".{}", "0".repeat(n)));
        return format!("{sign}0x0{zeros}p+00");
    }
    // One bit before the point and sixty behind it.
    let shift = mantissa.leading_zeros() as i32 - 3;
    mantissa <<= shift;
    exponent += 60 - shift;
    if let Some(precision) = precision.filter(|&precision| precision < 15) {
        let cut = 60 - 4 * precision as u32;
        let (rest, half) = (mantissa & ((1 << cut) - 1), 1 << (cut - 1));
        mantissa >>= cut;
        if rest > half || (rest == half && mantissa & 1 == 1) {
            mantissa += 1;
        }
        mantissa <<= cut;
        if mantissa >> 61 == 1 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let mut fraction = format!("{:015x}", mantissa & ((1 << 60) - 1));
    match precision {
        None => fraction.truncate(fraction.trim_end_matches('0').len()),
        Some(precision) => {
            let missing = precision.saturating_sub(15);
            fraction.truncate(precision);
            fraction.push_str(&"0".repeat(missing));
        }
    }
    let point = if fraction.is_empty() { "" } else { "." };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!(
        "{sign}0x{}{point}{fraction}p{exponent_sign}{:02}",
        mantissa >> 60,
        exponent.abs()
    )
}
