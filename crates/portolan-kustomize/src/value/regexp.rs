//! Patterns that select by name: plain texts, or Go's regular expressions.

use portolan_go::regexp::translate;
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
            _ if !Self::is_regex(pattern) => Ok(Self::Exact(pattern.to_owned())),
            _ => Ok(Self::Regex(compile(&format!("^(?:{pattern})$"))?)),
        }
    }

    /// Whether a pattern needs an automaton.
    pub(crate) fn is_regex(pattern: &str) -> bool {
        pattern.contains(SPECIAL)
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
    let refused = |problem: String| Error::refused(format!("error parsing regexp: {problem}"));
    let translated = translate(pattern).map_err(|error| refused(error.to_string()))?;
    Regex::new(&translated).map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, expected: bool) {
        let pattern = Pattern::whole(pattern).unwrap();
        assert_eq!(pattern.is_match(text), expected, "{pattern:?} {text}");
    }

    #[test]
    fn braces_that_count_nothing_are_themselves() {
        check(r"\${NAME}-web", "${NAME}-web", true);
        check("a{2}", "aa", true);
        check("a{2,}", "aaa", true);
        check("a{,2}", "a{,2}", true);
        check("a{", "a{", true);
    }

    #[test]
    fn classes_are_ascii_and_hold_brackets() {
        check(r"\d+", "12", true);
        check(r"\d+", "\u{663}", false);
        check(r"[\w-]+", "a-b_c", true);
        check(r"[^\d]", "7", false);
        check("[[]", "[", true);
        check("[]a]", "]", true);
        check("[a&&b]", "&", true);
        check("[[:alpha:]]+", "ab", true);
    }

    #[test]
    fn escapes_follow_go() {
        check(r"\Qa.b\E.", "a.bc", true);
        check(r"\Qa.b\E.", "axbc", false);
        check(r"a\<b", "a<b", true);
        check(r"\141", "a", true);
        check(r"a\.b", "axb", false);
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in ["a**", "*a", r"\h", r"\1", "[a", r"a\", "(a"] {
            assert!(Pattern::whole(pattern).is_err(), "{pattern}");
        }
    }
}
