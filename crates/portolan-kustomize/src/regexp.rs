//! Go's regular expressions through Rust's: the same family, with ASCII classes.

use regex::Regex;

use crate::error::{Error, Result};

/// A pattern; most are plain names and need no automaton.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// Matches everything.
    Any,
    /// Matches this text only.
    Exact(String),
    /// A regular expression.
    Regex(Regex),
}

/// Characters that mean more than themselves.
const SPECIAL: &[char] = &[
    '\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$',
];

impl Pattern {
    /// A pattern that must match a whole text; the empty one matches everything.
    pub(crate) fn whole(pattern: &str) -> Result<Self> {
        match pattern {
            "" => Ok(Self::Any),
            _ if !pattern.contains(SPECIAL) => Ok(Self::Exact(pattern.to_owned())),
            _ => Ok(Self::Regex(compile(&format!("^(?:{pattern})$"))?)),
        }
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => exact == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }

    /// The only text that matches, if there is just one.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self {
            Self::Exact(exact) => Some(exact),
            _ => None,
        }
    }
}

/// A regular expression that may match anywhere.
pub(crate) fn compile(pattern: &str) -> Result<Regex> {
    Regex::new(&ascii_classes(pattern))
        .map_err(|error| Error::refused(format!("error parsing regexp `{pattern}`: {error}")))
}

/// Go's `\d`, `\s` and `\w` know ASCII only, and `\z` is the end of the text.
fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    let mut is_in_class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(class @ ('d' | 's' | 'w')) => out.push_str(ascii(class, is_in_class)),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' => {
                is_in_class = true;
                out.push(letter);
            }
            ']' => {
                is_in_class = false;
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

fn ascii(class: char, is_in_class: bool) -> &'static str {
    match (class, is_in_class) {
        ('d', true) => "0-9",
        ('d', false) => "[0-9]",
        ('s', true) => r"\t\n\f\r ",
        ('s', false) => r"[\t\n\f\r ]",
        (_, true) => "0-9A-Za-z_",
        (_, false) => "[0-9A-Za-z_]",
    }
}
