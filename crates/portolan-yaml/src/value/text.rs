//! Text that is cheap to clone: a slice of the source it was read from, or a separate text.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// An immutable text; cloning copies no bytes.
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    Static(&'static str),
    /// A slice of a shared text. Both ends are on character boundaries: checked when made.
    Slice {
        source: Arc<str>,
        start: u32,
        end: u32,
    },
}

impl Text {
    /// A text known when the program is built.
    pub const fn from_static(text: &'static str) -> Self {
        Self(Repr::Static(text))
    }

    /// A part of a shared source; `None` when the range does not lie on character boundaries inside it.
    pub fn slice(source: &Arc<str>, start: usize, end: usize) -> Option<Self> {
        source.get(start..end)?;
        let (start, end) = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
        Some(Self(Repr::Slice {
            source: Arc::clone(source),
            start,
            end,
        }))
    }

    /// A part of a source whose ends the scanner found, which are on character boundaries.
    #[inline]
    pub(crate) fn scanned(source: &Arc<str>, start: u32, end: u32) -> Self {
        debug_assert!(source.get(start as usize..end as usize).is_some());
        Self(Repr::Slice {
            source: Arc::clone(source),
            start,
            end,
        })
    }

    /// The shared text it is a part of, and its two ends there.
    pub(crate) fn place(&self) -> Option<(Arc<str>, usize, usize)> {
        match &self.0 {
            Repr::Static(_) => None,
            Repr::Slice { source, start, end } => {
                Some((Arc::clone(source), *start as usize, *end as usize))
            }
        }
    }

    /// The length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Static(text) => text.len(),
            Repr::Slice { start, end, .. } => (end - start) as usize,
        }
    }

    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text's bytes, which need no look at character boundaries.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Static(text) => text.as_bytes(),
            Repr::Slice { source, start, end } => {
                &source.as_bytes()[*start as usize..*end as usize]
            }
        }
    }

    /// The text as a shared one of its own; copies only what is a part of something larger.
    pub fn into_shared(self) -> Arc<str> {
        match self.0 {
            Repr::Slice { source, start, end } if start == 0 && end as usize == source.len() => {
                source
            }
            _ => Arc::from(self.as_str()),
        }
    }

    /// The text itself.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Static(text) => text,
            Repr::Slice { source, start, end } => &source[*start as usize..*end as usize],
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from_static("")
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(Arc::from(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(Arc::from(text))
    }
}

impl From<Arc<str>> for Text {
    fn from(source: Arc<str>) -> Self {
        // Inputs are limited to far less than 4 GiB before a text is made of them; a longer one would be cut, not
        // misread.
        let mut end = source.len().min(u32::MAX as usize);
        while !source.is_char_boundary(end) {
            end -= 1;
        }
        Self(Repr::Slice {
            end: end as u32,
            start: 0,
            source,
        })
    }
}

impl PartialEq for Text {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    #[inline]
    fn eq(&self, other: &str) -> bool {
        self.len() == other.len() && self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    #[inline]
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}
