//! Turns pieces into text: what each operator does with a variable's value.
//!
//! Values are handled as bytes, because substrings and trims may cut inside a character; the final result must be
//! UTF-8 again.

use std::borrow::Cow;

use crate::error::{Error, ErrorKind};
use crate::glob;
use crate::parser::{Expression, Operator, Piece};

/// How many bytes a substitution may yield; replacements in replacements could multiply without end.
pub const MAX_OUTPUT: usize = 64 << 20;

/// How many steps all trim patterns of a text may take; a trim tries every prefix of its value.
pub const MAX_WORK: usize = 100_000_000;

/// What becomes of a variable that nothing sets, where the expression gives no default.
#[derive(Clone, Copy)]
pub enum Unset<'a> {
    /// It is empty.
    Empty,
    /// It is an error: Flux's strict mode.
    Refused,
    /// It is what this answers for its name.
    Filled(&'a dyn Fn(&str) -> String),
}

/// Puts the pieces together.
pub(crate) fn expand<'v>(
    pieces: &[Piece],
    unset: Unset<'_>,
    lookup: &dyn Fn(&str) -> Option<&'v str>,
    derived: &dyn Fn(&str, &[u8]) -> Option<String>,
) -> Result<String, Error> {
    let mut expander = Expander {
        unset,
        lookup,
        derived,
        work: Work(MAX_WORK),
    };
    let mut output = Vec::new();
    let mut starts = Vec::new();
    for piece in pieces {
        if let Piece::Expression(expression) = piece {
            starts.push((output.len(), expression.offset));
        }
        expander.piece(piece, &mut output)?;
    }
    String::from_utf8(output).map_err(|error| {
        let broken = error.utf8_error().valid_up_to();
        let before = starts.partition_point(|(start, _)| *start <= broken);
        let offset = starts
            .get(before.saturating_sub(1))
            .map_or(0, |(_, at)| *at);
        ErrorKind::NotUtf8.at(offset)
    })
}

/// The steps that are left for trim patterns.
pub(crate) struct Work(usize);

impl Work {
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), ErrorKind> {
        self.0 = self.0.checked_sub(steps).ok_or(ErrorKind::TooMuchWork)?;
        Ok(())
    }
}

struct Expander<'a, 'v> {
    unset: Unset<'a>,
    lookup: &'a dyn Fn(&str) -> Option<&'v str>,
    derived: &'a dyn Fn(&str, &[u8]) -> Option<String>,
    work: Work,
}

impl Expander<'_, '_> {
    fn piece(&mut self, piece: &Piece, output: &mut Vec<u8>) -> Result<(), Error> {
        match piece {
            Piece::Text(text) => output.extend_from_slice(text.as_bytes()),
            Piece::Expression(expression) => {
                let value = self.expression(expression)?;
                if output.len() + value.len() > MAX_OUTPUT {
                    return Err(ErrorKind::TooLong.at(expression.offset));
                }
                output.extend_from_slice(&value);
            }
        }
        Ok(())
    }

    fn expression(&mut self, expression: &Expression) -> Result<Vec<u8>, Error> {
        let mut arguments = Vec::with_capacity(expression.arguments.len());
        for argument in &expression.arguments {
            let mut text = Vec::new();
            self.piece(argument, &mut text)?;
            arguments.push(text);
        }
        let value = (self.lookup)(&expression.name);
        let name = &expression.name;
        let value = match (value, self.unset) {
            (Some(value), _) => Cow::Borrowed(value),
            (None, _) if expression.operator == Operator::Default => Cow::default(),
            (None, Unset::Empty) => Cow::default(),
            (None, Unset::Filled(fill)) => Cow::Owned(fill(name)),
            (None, Unset::Refused) => {
                return Err(ErrorKind::NotSet(name.clone()).at(expression.offset));
            }
        };
        let result = self
            .apply(expression.operator, &value, &arguments)
            .map_err(|kind| kind.at(expression.offset))?;
        let is_changed = result != value.as_bytes();
        let derived = is_changed.then(|| (self.derived)(&value, &result));
        Ok(derived.flatten().map_or(result, String::into_bytes))
    }

    fn apply(
        &mut self,
        operator: Operator,
        value: &str,
        arguments: &[Vec<u8>],
    ) -> Result<Vec<u8>, ErrorKind> {
        let first = arguments.first().map(Vec::as_slice).unwrap_or_default();
        let second = arguments.get(1).map(Vec::as_slice);
        let bytes = value.as_bytes();
        let result = match operator {
            Operator::Length => value.len().to_string().into_bytes(),
            Operator::Default if value.is_empty() => arguments.concat(),
            Operator::Value | Operator::Default => bytes.to_vec(),
            Operator::Substring => substring(bytes, first, second).to_vec(),
            Operator::Lower => value.chars().map(lower).collect::<String>().into_bytes(),
            Operator::Upper => value.chars().map(upper).collect::<String>().into_bytes(),
            Operator::LowerFirst => first_mapped(value, lower),
            Operator::UpperFirst => first_mapped(value, upper),
            Operator::TrimShortestPrefix => self.trim(bytes, first, Trim::Shortest)?,
            Operator::TrimLongestPrefix => self.trim(bytes, first, Trim::Longest)?,
            Operator::TrimShortestSuffix => self.trim_suffix(value, first, Trim::Shortest)?,
            Operator::TrimLongestSuffix => self.trim_suffix(value, first, Trim::Longest)?,
            Operator::ReplaceFirst => replace(bytes, first, second.unwrap_or_default(), 1)?,
            Operator::ReplaceAll => replace(bytes, first, second.unwrap_or_default(), usize::MAX)?,
            Operator::ReplacePrefix => replace_prefix(bytes, first, second),
            Operator::ReplaceSuffix => replace_suffix(bytes, first, second),
        };
        Ok(result)
    }

    /// Removes the shortest or longest non-empty prefix that matches.
    fn trim(&mut self, value: &[u8], pattern: &[u8], trim: Trim) -> Result<Vec<u8>, ErrorKind> {
        let lengths: &mut dyn Iterator<Item = usize> = match trim {
            Trim::Shortest => &mut (1..=value.len()),
            Trim::Longest => &mut (1..=value.len()).rev(),
        };
        for length in lengths {
            match glob::matches(pattern, &value[..length], &mut self.work)? {
                Ok(true) => return Ok(value[length..].to_vec()),
                Ok(false) => {}
                Err(glob::BadPattern) => break,
            }
        }
        Ok(value.to_vec())
    }

    /// The original turns value and pattern around and trims a prefix, so `[a-z]` and `\c` do not work in suffixes.
    fn trim_suffix(
        &mut self,
        value: &str,
        pattern: &[u8],
        trim: Trim,
    ) -> Result<Vec<u8>, ErrorKind> {
        let value = reversed(value.as_bytes());
        let rest = self.trim(&value, &reversed(pattern), trim)?;
        Ok(reversed(&rest))
    }
}

#[derive(Clone, Copy)]
enum Trim {
    Shortest,
    Longest,
}

/// The characters in the opposite order; broken ones become U+FFFD.
fn reversed(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    text.chars().rev().collect::<String>().into_bytes()
}

/// `${v:offset:length}` in bytes; a number that cannot be read yields the whole value, a negative length counts from
/// the end.
fn substring<'b>(value: &'b [u8], offset: &[u8], length: Option<&[u8]>) -> &'b [u8] {
    let Some(offset) = number(offset) else {
        return value;
    };
    let total = value.len() as i64;
    let start = if offset < 0 {
        offset.saturating_add(total).max(0)
    } else {
        offset.min(total)
    };
    let end = match length.map(number) {
        None => total,
        Some(None) => return value,
        Some(Some(length)) if length < 0 => total.saturating_add(length),
        Some(Some(length)) => start.saturating_add(length).min(total),
    };
    value
        .get(start as usize..end.max(start) as usize)
        .unwrap_or_default()
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn first_mapped(value: &str, map: fn(char) -> char) -> Vec<u8> {
    let mut characters = value.chars();
    let first = characters.next().map(map);
    let text: String = first.into_iter().chain(characters).collect();
    text.into_bytes()
}

/// Go maps character by character: what would become several characters stays.
fn upper(character: char) -> char {
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(single), None) => single,
        _ => character,
    }
}

fn lower(character: char) -> char {
    let mut mapped = character.to_lowercase();
    match (mapped.next(), mapped.next()) {
        (Some(single), None) => single,
        (Some(first), Some(_)) => first,
        _ => character,
    }
}

/// Replaces up to `count` literal occurrences; an empty pattern stands before every character and at the end.
fn replace(
    value: &[u8],
    pattern: &[u8],
    replacement: &[u8],
    count: usize,
) -> Result<Vec<u8>, ErrorKind> {
    let mut output = Vec::new();
    let mut at = 0;
    for found in occurrences(value, pattern).take(count) {
        output.extend_from_slice(&value[at..found]);
        output.extend_from_slice(replacement);
        at = found + pattern.len();
        if output.len() > MAX_OUTPUT {
            return Err(ErrorKind::TooLong);
        }
    }
    output.extend_from_slice(&value[at..]);
    Ok(output)
}

/// Where a pattern stands in a value, from left to right without overlaps.
fn occurrences<'a>(value: &'a [u8], pattern: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at <= value.len() {
            let here = at;
            at += 1;
            let on_boundary = value.get(here).is_none_or(|byte| byte & 0xC0 != 0x80);
            if pattern.is_empty() && on_boundary {
                return Some(here);
            }
            if !pattern.is_empty() && value[here..].starts_with(pattern) {
                at = here + pattern.len();
                return Some(here);
            }
        }
        None
    })
}

fn replace_prefix(value: &[u8], prefix: &[u8], replacement: Option<&[u8]>) -> Vec<u8> {
    match (value.strip_prefix(prefix), replacement) {
        (Some(rest), Some(replacement)) => [replacement, rest].concat(),
        _ => value.to_vec(),
    }
}

fn replace_suffix(value: &[u8], suffix: &[u8], replacement: Option<&[u8]>) -> Vec<u8> {
    match (value.strip_suffix(suffix), replacement) {
        (Some(rest), Some(replacement)) => [rest, replacement].concat(),
        _ => value.to_vec(),
    }
}
