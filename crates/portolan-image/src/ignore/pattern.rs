//! One pattern: its text decides how it is matched; if no simple way fits, it becomes a regular expression, as in
//! Docker.

use portolan_go::regexp::translate;
use regex::{Regex, RegexBuilder};

/// The size of a compiled expression: far above what a line of an ignore file needs.
const MAX_EXPRESSION_BYTES: usize = 4 << 20;

/// How a pattern is matched.
#[derive(Debug)]
pub(super) enum Matcher {
    /// The path is the pattern.
    Exact,
    /// The path begins with it, `**` at its end taken off.
    Prefix,
    /// The path ends with it, `**` at its beginning taken off.
    Suffix,
    /// The path matches an expression.
    Expression(Box<Regex>),
    /// Docker finds that it cannot be matched, when it tries to.
    Invalid,
}

/// What came of matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Match,
    NoMatch,
    Invalid,
}

impl Matcher {
    pub(super) fn new(pattern: &str) -> Self {
        let (kind, expression) = read(pattern);
        match kind {
            Kind::Exact => Self::Exact,
            Kind::Prefix => Self::Prefix,
            Kind::Suffix => Self::Suffix,
            Kind::Expression => compile(&expression).map_or(Self::Invalid, Self::Expression),
        }
    }

    pub(super) fn verdict(&self, pattern: &str, path: &str) -> Verdict {
        let matched = match self {
            Self::Exact => path == pattern,
            Self::Prefix => path.starts_with(pattern.strip_suffix("**").unwrap_or(pattern)),
            Self::Suffix => {
                let suffix = pattern.strip_prefix("**").unwrap_or(pattern);
                path.ends_with(suffix) || suffix.strip_prefix('/') == Some(path)
            }
            Self::Expression(expression) => expression.is_match(path),
            Self::Invalid => return Verdict::Invalid,
        };
        if matched {
            Verdict::Match
        } else {
            Verdict::NoMatch
        }
    }
}

fn compile(expression: &str) -> Option<Box<Regex>> {
    let translated = translate(expression).ok()?;
    RegexBuilder::new(&translated)
        .size_limit(MAX_EXPRESSION_BYTES)
        .build()
        .ok()
        .map(Box::new)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exact,
    Prefix,
    Suffix,
    Expression,
}

/// Reads a pattern into its kind and its regular expression in Go's syntax. Inside a class, too, `*` and `?` are written
/// as the expressions that they stand for elsewhere: that is what Docker does.
fn read(pattern: &str) -> (Kind, String) {
    let mut kind = Kind::Exact;
    let mut expression = String::from("^");
    // Go's scanner does not see a byte order mark that stands first.
    let mut rest = pattern
        .strip_prefix('\u{feff}')
        .unwrap_or(pattern)
        .chars()
        .peekable();
    let mut is_first = true;
    while let Some(character) = rest.next() {
        match character {
            '*' if rest.next_if_eq(&'*').is_some() => {
                rest.next_if_eq(&'/');
                kind = match (rest.peek(), kind) {
                    (None, Kind::Exact) => Kind::Prefix,
                    (None, _) => {
                        expression.push_str(".*");
                        Kind::Expression
                    }
                    (Some(_), _) => {
                        expression.push_str("(.*/)?");
                        Kind::Expression
                    }
                };
                if is_first {
                    kind = Kind::Suffix;
                }
            }
            '*' => {
                expression.push_str("[^/]*");
                kind = Kind::Expression;
            }
            '?' => {
                expression.push_str("[^/]");
                kind = Kind::Expression;
            }
            // Docker means to escape `|`, `{` and `}` too, but its table of bits has no room for them.
            '.' | '+' | '(' | ')' | '$' => {
                expression.push('\\');
                expression.push(character);
            }
            '\\' => {
                expression.push('\\');
                if let Some(escaped) = rest.next() {
                    expression.push(escaped);
                    kind = Kind::Expression;
                }
            }
            '[' | ']' => {
                expression.push(character);
                kind = Kind::Expression;
            }
            _ => expression.push(character),
        }
        is_first = false;
    }
    expression.push('$');
    (kind, expression)
}
