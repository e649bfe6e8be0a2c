//! `.dockerignore`: which files of a context are left out, exactly as in moby/patternmatcher.
//!
//! Patterns are anchored at the context's root, the last one that matches decides, and `!` includes files again, also
//! below a directory that is left out. Unusual rules that follow from Docker's matcher (a `*` inside `[…]`, a byte
//! order mark) are kept. The tests compare with the Go library through `testbed/ignore-oracle`.

mod file;
mod pattern;

pub use file::{IgnoreFileError, read_patterns};

use pattern::{Matcher, Verdict};

/// The most patterns that one list may have.
pub const MAX_PATTERNS: usize = 10_000;

/// A list of patterns that says which paths are left out.
#[derive(Debug, Default)]
pub struct Ignore {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    /// Written with `!`: takes back in what it matches.
    takes_in: bool,
    text: String,
    matcher: Matcher,
}

/// Which patterns matched a directory; what lies below it needs that.
#[derive(Debug, Clone, Default)]
pub struct Matched {
    by_pattern: Vec<bool>,
}

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// `!` without anything behind it.
    #[error("`!` alone is not a pattern")]
    Empty,
    /// A class that is not closed or empty, or a `\` at the end.
    #[error("`{0}` is not a pattern: a class is not closed or not valid, or a `\\` ends it")]
    Syntax(String),
    /// More patterns than [`MAX_PATTERNS`].
    #[error("more than {MAX_PATTERNS} patterns")]
    TooMany,
}

impl Ignore {
    /// Takes patterns as [`read_patterns`] gives them.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, IgnoreError> {
        let mut list = Vec::new();
        for pattern in patterns {
            let trimmed = pattern.trim();
            if trimmed.is_empty() {
                continue;
            }
            if list.len() == MAX_PATTERNS {
                return Err(IgnoreError::TooMany);
            }
            list.push(Pattern::new(&portolan_go::path::clean(trimmed))?);
        }
        Ok(Self { patterns: list })
    }

    /// Says whether a path is left out, and what its children need to know; `above` is that of its directory.
    ///
    /// The first level takes [`Matched::default`].
    pub fn matches(&self, path: &str, above: &Matched) -> Result<(bool, Matched), IgnoreError> {
        let mut by_pattern = vec![false; self.patterns.len()];
        let mut left_out = false;
        for (at, pattern) in self.patterns.iter().enumerate() {
            let mut matched = above.by_pattern.get(at).copied().unwrap_or(false);
            if !matched {
                // It could not change the answer; Docker does not even look whether it is valid.
                if pattern.takes_in != left_out {
                    continue;
                }
                matched = pattern.is_match(path)?;
            }
            if let Some(slot) = by_pattern.get_mut(at) {
                *slot = matched;
            }
            if matched {
                left_out = !pattern.takes_in;
            }
        }
        Ok((left_out, Matched { by_pattern }))
    }

    /// Says whether a path is left out, asking for each directory above it first.
    pub fn is_left_out(&self, path: &str) -> Result<bool, IgnoreError> {
        let mut above = Matched::default();
        for (at, _) in path.match_indices('/') {
            (_, above) = self.matches(&path[..at], &above)?;
        }
        Ok(self.matches(path, &above)?.0)
    }

    /// Whether a pattern with `!` could take back in what lies below a directory that is left out.
    pub fn may_take_in_below(&self, directory: &str) -> bool {
        self.patterns
            .iter()
            .filter(|pattern| pattern.takes_in)
            .any(|pattern| pattern.may_match_below(directory))
    }
}

impl Pattern {
    fn new(cleaned: &str) -> Result<Self, IgnoreError> {
        let (takes_in, text) = match cleaned.strip_prefix('!') {
            Some("") => return Err(IgnoreError::Empty),
            Some(text) => (true, text),
            None => (false, cleaned),
        };
        // Docker tries it on a name to see whether it is valid, and so finds some of what is not.
        if portolan_go::wildcard::matches(text, ".").is_err() {
            return Err(IgnoreError::Syntax(text.to_owned()));
        }
        Ok(Self {
            takes_in,
            matcher: Matcher::new(text),
            text: text.to_owned(),
        })
    }

    fn is_match(&self, path: &str) -> Result<bool, IgnoreError> {
        match self.matcher.verdict(&self.text, path) {
            Verdict::Match => Ok(true),
            Verdict::NoMatch => Ok(false),
            Verdict::Invalid => Err(IgnoreError::Syntax(self.text.clone())),
        }
    }

    /// Compares name by name until one has a special character; in doubt it may.
    fn may_match_below(&self, directory: &str) -> bool {
        let mut names = directory.split('/');
        for part in self.text.split('/') {
            if part.contains(['*', '?', '[', '\\', '\u{feff}']) {
                return true;
            }
            match names.next() {
                Some(name) if name != part => return false,
                Some(_) => {}
                None => return true,
            }
        }
        true
    }
}
