//! Number constants: one text may be an integer, an unsigned integer, a float and a complex number at once.

use super::lexer::TokenKind;
use super::unquote::{CharError, unquote_char};
use crate::fmt::quote;

/// Every type that can hold the constant, with its value.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Number {
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
}

impl Number {
    /// Reads a constant; the error is Go's message.
    pub(crate) fn parse(text: &str, kind: TokenKind) -> Result<Self, String> {
        match kind {
            TokenKind::CharConstant => Self::character(text),
            TokenKind::Complex => Self::complex(text),
            _ => Self::plain(text),
        }
    }

    fn character(text: &str) -> Result<Self, String> {
        let code = unquote_char(text).map_err(|error| match error {
            CharError::Syntax => "invalid syntax".to_owned(),
            CharError::Malformed => format!("malformed character constant: {text}"),
        })?;
        Ok(Self {
            int: Some(i64::from(code)),
            uint: Some(u64::from(code)),
            float: Some(f64::from(code)),
            complex: None,
        })
    }

    /// `1+2i`: the imaginary part begins at the last sign that is not an exponent's.
    fn complex(text: &str) -> Result<Self, String> {
        let body = text.strip_suffix('i').unwrap_or(text);
        let split = body
            .char_indices()
            .skip(1)
            .filter(|&(at, c)| {
                matches!(c, '+' | '-') && !body[..at].ends_with(['e', 'E', 'p', 'P'])
            })
            .map(|(at, _)| at)
            .last();
        let parts =
            split.and_then(|at| Some((parse_float(&body[..at])?, parse_float(&body[at..])?)));
        match parts {
            Some((re, im)) => Ok(Self::from_complex(re, im)),
            None => Err("syntax error scanning complex number".to_owned()),
        }
    }

    fn from_complex(re: f64, im: f64) -> Self {
        let mut number = Self {
            complex: Some((re, im)),
            ..Self::default()
        };
        if im == 0.0 {
            number.float = Some(re);
            number.int = whole_int(re);
            number.uint = whole_uint(re);
        }
        number
    }

    /// A few digits without a leading zero: nearly every number.
    fn small(text: &str) -> Option<Self> {
        const SAFE_DIGITS: usize = 15;
        let is_small = text.len() <= SAFE_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        let has_prefix = text.len() > 1 && text.starts_with('0');
        let int: i64 = (is_small && !has_prefix).then(|| text.parse().ok())??;
        Some(Self {
            int: Some(int),
            uint: Some(int.unsigned_abs()),
            float: Some(int as f64),
            complex: None,
        })
    }

    fn plain(text: &str) -> Result<Self, String> {
        if let Some(small) = Self::small(text) {
            return Ok(small);
        }
        if let Some(im) = text.strip_suffix('i').and_then(parse_float) {
            return Ok(Self::from_complex(0.0, im));
        }
        let mut number = Self {
            uint: parse_uint(text),
            int: parse_int(text),
            ..Self::default()
        };
        if number.int == Some(0) {
            number.uint = Some(0);
        }
        if let Some(int) = number.int {
            number.float = Some(int as f64);
        } else if let Some(uint) = number.uint {
            number.float = Some(uint as f64);
        } else if let Some(float) = parse_float(text) {
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!(
                    "integer overflow: {}",
                    quote(text.as_bytes(), false)
                ));
            }
            number.float = Some(float);
            number.int = whole_int(float);
            number.uint = whole_uint(float);
        } else {
            return Err(format!(
                "illegal number syntax: {}",
                quote(text.as_bytes(), false)
            ));
        }
        Ok(number)
    }
}

fn whole_int(float: f64) -> Option<i64> {
    (float as i64 as f64 == float && float < 9_223_372_036_854_775_808.0).then_some(float as i64)
}

fn whole_uint(float: f64) -> Option<u64> {
    (float as u64 as f64 == float && float < 18_446_744_073_709_551_616.0).then_some(float as u64)
}

/// `strconv.ParseInt` with base 0.
fn parse_int(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let magnitude = parse_uint(text.strip_prefix(['+', '-']).unwrap_or(text))?;
    if negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// `strconv.ParseUint` with base 0: prefixes `0x 0o 0b 0`, underscores between digits.
fn parse_uint(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&*lower, 10),
    };
    if digits.starts_with(['+', '-']) || !underscores_fit(digits, radix != 10) {
        return None;
    }
    u64::from_str_radix(&digits.replace('_', ""), radix).ok()
}

/// Underscores must stand between digits, or between the prefix and a digit.
fn underscores_fit(digits: &str, prefixed: bool) -> bool {
    !digits.ends_with('_') && !digits.contains("__") && (prefixed || !digits.starts_with('_'))
}

/// Every underscore must have a digit on both sides.
fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let mut underscores = bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'_');
    underscores.all(|(at, _)| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)))
}

/// `strconv.ParseFloat`: decimal or hexadecimal, no out-of-range values.
fn parse_float(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    let float = if let Some(hex) = unsigned.strip_prefix("0x") {
        let float = parse_hex_float(hex)?;
        if lower.starts_with('-') {
            -float
        } else {
            float
        }
    } else {
        if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            || !underscores_separate_digits(unsigned)
        {
            return None;
        }
        lower.replace('_', "").parse().ok()?
    };
    float.is_finite().then_some(float)
}

/// The digits of a hexadecimal float; the exponent is a power of two and must be there.
fn parse_hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let mantissa = mantissa.replace('_', "");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((&mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() {
        return None;
    }
    let exponent: i32 = exponent.replace('_', "").parse().ok()?;
    let mut value = 0.0_f64;
    for digit in digits.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    Some(value * 2.0_f64.powi(exponent.saturating_sub(4 * fraction.len() as i32)))
}
