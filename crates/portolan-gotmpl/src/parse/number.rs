//! Number constants: one text may be an integer, an unsigned integer, a float and a complex number at once.

use portolan_go::strconv::{self, CharError, unquote_char};

use super::lexer::TokenKind;
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
            uint: strconv::parse_uint(text, 0),
            int: strconv::parse_int(text, 0),
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

/// A float; unlike `strconv.ParseFloat` it has no names such as `Inf`.
fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    is_number.then(|| strconv::parse_float(text))?
}
