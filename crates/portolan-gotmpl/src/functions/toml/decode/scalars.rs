//! Numbers, booleans and dates, each one word.

use super::Problem;
use crate::fmt::{quote, quote_rune};
use crate::value::Value;
use portolan_go::strconv::{parse_float, parse_int};
use portolan_go::time::Time;

/// What a word is.
#[derive(Clone, Copy)]
pub(super) enum Scalar {
    Bool(bool),
    Integer,
    Float,
    Date,
}

type Scanned<'t> = Result<(&'t str, Scalar), Option<Problem>>;

/// The word at the start of a text; no problem means that no value can start like this.
pub(super) fn scan(text: &str) -> Scanned<'_> {
    let first = text.chars().next().ok_or(None)?;
    match first {
        '0'..='9' => number(text),
        '+' | '-' => signed(text),
        '.' => Err(problem("floats must start with a digit, not '.'")),
        _ if text.starts_with("inf") || text.starts_with("nan") => Ok((&text[..3], Scalar::Float)),
        _ if first.is_alphabetic() => boolean(text),
        _ => Err(None),
    }
}

fn problem(message: impl Into<String>) -> Option<Problem> {
    Some(Problem::Text(message.into()))
}

fn boolean(text: &str) -> Scanned<'_> {
    let end = text.find(|c: char| !c.is_alphabetic());
    let word = &text[..end.unwrap_or(text.len())];
    match word {
        "true" => Ok((word, Scalar::Bool(true))),
        "false" => Ok((word, Scalar::Bool(false))),
        _ => {
            let word = quote(word.as_bytes(), false);
            Err(problem(format!("expected value but found {word} instead")))
        }
    }
}

fn signed(text: &str) -> Scanned<'_> {
    let (sign, unsigned) = text.split_at(1);
    match unsigned.chars().next() {
        Some('0'..='9') => {
            let mut letters = unsigned.chars();
            if let (Some('0'), Some(base @ ('x' | 'o' | 'b'))) = (letters.next(), letters.next()) {
                return Err(problem(format!(
                    "cannot use sign with non-decimal numbers: '{sign}0{base}'"
                )));
            }
            let (word, scalar) = number(unsigned)?;
            Ok((&text[..=word.len()], scalar))
        }
        Some('.') => Err(problem("floats must start with a digit, not '.'")),
        Some('i' | 'n') => {
            if unsigned.starts_with("inf") || unsigned.starts_with("nan") {
                return Ok((&text[..4], Scalar::Float));
            }
            let end = unsigned.find(|c: char| !c.is_ascii_alphabetic());
            let word = &unsigned[..end.unwrap_or(unsigned.len())];
            Err(problem(format!("invalid float: '{sign}{word}'")))
        }
        Some(other) => {
            let found = quote_rune(other, false);
            Err(problem(format!("expected a digit but got {found}")))
        }
        None => Err(Some(Problem::End(
            "expected a digit but got '\\x00'".to_owned(),
        ))),
    }
}

/// A word that starts with a digit: what follows the first digits decides.
fn number(text: &str) -> Scanned<'_> {
    let mut letters = text.chars();
    if let (Some('0'), Some(base @ ('x' | 'o' | 'b'))) = (letters.next(), letters.next()) {
        return based_number(text, base);
    }
    let digits = span(text, |c| c.is_ascii_digit() || c == '_');
    match text[digits.len()..].chars().next() {
        Some('-' | ':') => Ok((date_word(text), Scalar::Date)),
        Some('.' | 'e' | 'E') => {
            let is_part = |c: char| c.is_ascii_digit() || "_.+-eE".contains(c);
            Ok((span(text, is_part), Scalar::Float))
        }
        _ => Ok((digits, Scalar::Integer)),
    }
}

fn based_number(text: &str, base: char) -> Scanned<'_> {
    let (radix, name) = match base {
        'x' => (16, "a hexidecimal"),
        'o' => (8, "an octal"),
        _ => (2, "a binary"),
    };
    let first = text[2..].chars().next().unwrap_or('\0');
    if !first.is_digit(radix) {
        return Err(problem(format!("not {name} number: '0{base}{first}'")));
    }
    let digits = span(&text[2..], |c| c.is_digit(radix) || c == '_');
    Ok((&text[..2 + digits.len()], Scalar::Integer))
}

fn span(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !is_part(c));
    &text[..end.unwrap_or(text.len())]
}

/// A date and a time may have a space between them, nothing else may.
fn date_word(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_digit() || "-:TtZz.+".contains(c);
    let date = span(text, is_part);
    let rest = &text[date.len()..];
    let is_date = date.len() == 10 && date.as_bytes().get(4) == Some(&b'-');
    match rest.strip_prefix(' ') {
        Some(time) if is_date && time.starts_with(|c: char| c.is_ascii_digit()) => {
            &text[..=date.len() + span(time, is_part).len()]
        }
        _ => date,
    }
}

pub(super) fn integer(word: &str) -> Result<Value, String> {
    let invalid = |reason| {
        let word = quote(word.as_bytes(), false);
        Err(format!("Invalid integer {word}: {reason}"))
    };
    if !underscores_are_inside(word) {
        return invalid("underscores must be surrounded by digits");
    }
    if has_leading_zero(word) {
        return invalid("cannot have leading zeroes");
    }
    let plain = word.replace('_', "");
    match parse_int(&plain, 0) {
        Some(value) => Ok(Value::int64(value)),
        None => Err(format!("{plain} is out of range for int64")),
    }
}

pub(super) fn float(word: &str) -> Result<Value, String> {
    match word.trim_start_matches(['+', '-']) {
        "nan" => return Ok(Value::float(f64::NAN)),
        "inf" if word.starts_with('-') => return Ok(Value::float(f64::NEG_INFINITY)),
        "inf" => return Ok(Value::float(f64::INFINITY)),
        _ => {}
    }
    let shown = quote(word.as_bytes(), false);
    let invalid = |reason| Err(format!("Invalid float {shown}: {reason}"));
    let mut parts = word.split(['.', 'e', 'E']).filter(|part| !part.is_empty());
    if !parts.clone().all(underscores_are_inside) {
        return invalid("underscores must be surrounded by digits");
    }
    if parts.next().is_some_and(has_leading_zero) {
        return invalid("cannot have leading zeroes");
    }
    let mut after_points = word.split('.').skip(1);
    if !after_points.all(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
        return invalid("'.' must be followed by one or more digits");
    }
    let plain = word.replace('_', "");
    match parse_float(&plain) {
        Some(value) if value.is_finite() => Ok(Value::float(value)),
        _ if plain.parse::<f64>().is_ok() => Err(format!("{plain} is out of range for float64")),
        _ => Err(format!("Invalid float value: {shown}")),
    }
}

fn underscores_are_inside(word: &str) -> bool {
    let mut after_digit = false;
    for letter in word.chars() {
        if letter == '_' && !after_digit {
            return false;
        }
        after_digit = letter.is_ascii_hexdigit();
    }
    after_digit
}

fn has_leading_zero(word: &str) -> bool {
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    let is_based = ["0x", "0o", "0b"].iter().any(|base| word.starts_with(base));
    unsigned.len() > 1 && unsigned.starts_with('0') && !is_based
}

/// Dates and times of every form; those without a zone are taken to be in UTC.
pub(super) fn date(word: &str) -> Result<Value, String> {
    let word = word.replace(['t', ' '], "T").replace('z', "Z");
    let layouts = [
        "2006-01-02T15:04:05Z07:00",
        "2006-01-02T15:04:05",
        "2006-01-02",
        "15:04:05",
    ];
    let time = layouts
        .iter()
        .find_map(|layout| Time::parse(layout, &word).ok());
    match time {
        Some(time) => Ok(Value::object(time)),
        None => {
            let word = quote(word.as_bytes(), false);
            Err(format!("invalid datetime: {word}"))
        }
    }
}
