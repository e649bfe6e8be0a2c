//! The keys of a read or a watch: one key, or a range of keys.

use bytes::Bytes;

use crate::limits::{MAX_KEY_BYTES, MAX_PAGE};
use crate::{Record, Refusal, Revision};

/// Keys from `start` up to and without `end`, in byte order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub(crate) start: Bytes,
    /// `None`: no end.
    pub(crate) end: Option<Bytes>,
}

impl Span {
    /// The one key.
    pub fn key(key: impl Into<Bytes>) -> Self {
        let start = key.into();
        let end = [&start[..], &[0]].concat();
        Self {
            start,
            end: Some(end.into()),
        }
    }

    /// All keys that begin with `prefix`; with an empty one, all keys.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let start: Bytes = prefix.into();
        let end = successor(&start);
        if start.is_empty() {
            return Self::all();
        }
        Self { start, end }
    }

    /// All keys. A key has at least one byte, so the least possible one is a zero byte.
    pub fn all() -> Self {
        Self {
            start: Bytes::from_static(&[0]),
            end: None,
        }
    }

    /// The part of this span that lies after `key`, for the next page of a list.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let next: Bytes = [key, &[0]].concat().into();
        Self {
            start: next.max(self.start.clone()),
            end: self.end.clone(),
        }
    }

    /// Whether the key lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &self.start[..] && self.end.as_ref().is_none_or(|end| key < &end[..])
    }

    /// Whether no key can lie in it.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end <= &self.start)
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        // The end of a span of one key is a byte longer than the key.
        let longest = self.end.as_ref().map_or(0, Bytes::len);
        match self.start.len().max(longest) {
            _ if self.start.is_empty() => Err(Refusal::EmptyKey),
            length if length > MAX_KEY_BYTES + 1 => Err(Refusal::LongKey { length }),
            _ => Ok(()),
        }
    }
}

/// The first key after all that begin with `prefix`; `None` when there is none (only bytes of 255).
fn successor(prefix: &[u8]) -> Option<Bytes> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)? + 1;
    let mut next = prefix[..kept].to_vec();
    next[kept - 1] += 1;
    Some(next.into())
}

/// A read of some keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Which keys.
    pub span: Span,
    /// At most so many; never more than [`MAX_PAGE`].
    pub limit: usize,
    /// As they were at this revision; `None`: as they are now.
    pub at: Option<Revision>,
}

impl Range {
    /// Reads the keys of a span as they are now, a page at a time.
    pub fn new(span: Span) -> Self {
        Self {
            span,
            limit: MAX_PAGE,
            at: None,
        }
    }

    /// Reads one key as it is now.
    pub fn key(key: impl Into<Bytes>) -> Self {
        Self {
            limit: 1,
            ..Self::new(Span::key(key))
        }
    }

    /// Reads as of a revision.
    #[must_use]
    pub fn at(mut self, revision: Revision) -> Self {
        self.at = Some(revision);
        self
    }

    /// Reads at most so many.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.limit == 0 || self.limit > MAX_PAGE {
            return Err(Refusal::PageSize { limit: self.limit });
        }
        if self.at == Some(0) {
            return Err(Refusal::RevisionZero);
        }
        self.span.check()
    }
}

/// What a range read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The records, sorted by key.
    pub records: Vec<Record>,
    /// Whether there are more after the last one. A page may end before its limit when it grows large.
    pub more: bool,
    /// The store's revision when it was read. Further pages are read [`at`](Range::at) this one.
    pub revision: Revision,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_first_key_that_does_not_begin_with_it() {
        let span = Span::prefix("/a/");
        assert!(span.contains(b"/a/") && span.contains(b"/a/\xff\xff"));
        assert!(!span.contains(b"/a") && !span.contains(b"/b/"));
    }

    #[test]
    fn a_prefix_of_highest_bytes_has_no_end() {
        assert!(Span::prefix(&b"\xff\xff"[..]).contains(b"\xff\xff\x01"));
        assert!(!Span::prefix(&b"a\xff"[..]).contains(b"b"));
    }

    #[test]
    fn one_key_is_not_its_own_prefix() {
        let span = Span::key("/a");
        assert!(span.contains(b"/a") && !span.contains(b"/a\0") && !span.contains(b"/aa"));
    }

    #[test]
    fn what_comes_after_the_last_key_of_a_page_begins_with_the_next_possible_key() {
        let rest = Span::prefix("/a/").after(b"/a/x");
        assert!(!rest.contains(b"/a/x") && rest.contains(b"/a/x\0") && rest.contains(b"/a/y"));
    }
}
