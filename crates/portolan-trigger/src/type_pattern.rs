//! Types of events that a trigger asks for: `beacon.drift`, everything below `run.*`, or `*`.

use std::fmt;

/// Types of events. Patterns end at a dot, so that they can be looked up instead of tried.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypePattern {
    /// As it is looked up: `beacon.drift`, `run.*`, `*`.
    text: String,
}

/// The longest type of an event.
pub(crate) const MAX_TYPE: usize = 128;

impl TypePattern {
    /// Reads a pattern; `None` if it is not one.
    ///
    /// ```
    /// use portolan_trigger::TypePattern;
    ///
    /// let pattern = TypePattern::parse("run.*").ok_or("no pattern")?;
    /// assert!(pattern.matches("run.step.failed"));
    /// assert!(!pattern.matches("runner.started"));
    /// assert!(TypePattern::parse("r*n.failed").is_none());
    /// # Ok::<(), &str>(())
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let plain = match text.strip_suffix('*') {
            Some("") => "any",
            Some(parent) => parent.strip_suffix('.')?,
            None => text,
        };
        is_type(plain).then(|| Self {
            text: text.to_owned(),
        })
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether an event of this type is asked for.
    pub fn matches(&self, kind: &str) -> bool {
        match self.text.strip_suffix('*') {
            Some(prefix) => kind.len() > prefix.len() && kind.starts_with(prefix),
            None => kind == self.text,
        }
    }
}

/// Whether a text is a type of events: words of lower-case letters, digits and `-`, with dots between them.
pub fn is_type(text: &str) -> bool {
    let is_word = |word: &str| {
        let is_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !word.is_empty() && word.bytes().all(is_letter)
    };
    text.len() <= MAX_TYPE && text.split('.').all(is_word)
}

impl fmt::Display for TypePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}
