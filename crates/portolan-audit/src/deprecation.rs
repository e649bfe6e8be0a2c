//! A deprecated field, value, annotation or node label inside objects that are themselves fine.

use crate::release::Release;

/// What is deprecated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A field, by its path.
    Field,
    /// One value of a field.
    Value(&'static str),
    /// An annotation, by its key.
    Annotation,
    /// A label of nodes, where pods and volumes choose nodes by it.
    NodeLabel,
}

/// One fact about a part of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deprecation {
    /// What is deprecated.
    pub part: Part,
    /// The kinds concerned, with commas; `pod` for Pods and every pod template; `*` for all.
    pub place: &'static str,
    /// A field's path with `[]` for every item and `*` for every key; or a key that may end in `*`.
    pub path: &'static str,
    /// Deprecated from then on; `None` when the source names no release.
    pub deprecated: Option<Release>,
    /// Without effect from then on.
    pub nonfunctional: Option<Release>,
    /// What to write instead; may be empty.
    pub replacement: &'static str,
    /// More to know; mostly empty.
    pub note: &'static str,
}

impl Deprecation {
    /// Whether a release deprecates it.
    pub(crate) fn concerns(&self, release: Release) -> bool {
        match (self.deprecated, self.nonfunctional) {
            (Some(start), _) | (None, Some(start)) => start <= release,
            (None, None) => true,
        }
    }

    /// Whether objects of this kind can have it; pod templates are asked for by `pod`.
    pub(crate) fn is_in(&self, kind: &str) -> bool {
        self.place.split(',').any(|place| place == kind)
    }
}
