//! Which objects are selected: by name, namespace, labels and kind, as with kubectl's options.

use crate::gvk::Gvk;
use crate::kind::kind_names::KindNames;
use crate::object::Object;
use crate::selection::no_match::{NoMatch, Noun};
use crate::selection::object_name::ObjectName;
use crate::selection::selector::Selector;

/// What an object must have to be meant; everything holds at once, and nothing given means all objects.
#[derive(Debug, Clone, Default)]
pub struct ObjectSelection {
    /// One of these names.
    pub names: Vec<ObjectName>,
    /// This namespace.
    pub namespace: Option<String>,
    /// These labels.
    pub selector: Selector,
    /// One of these kinds, by any word for it.
    pub only_kinds: Vec<String>,
    /// None of these kinds.
    pub skip_kinds: Vec<String>,
}

/// Something that may be meant.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// Its kind.
    pub gvk: Gvk,
    /// Its namespace; empty when it has none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The object itself, for its labels; what has none has no labels.
    pub object: Option<&'a Object>,
}

impl ObjectSelection {
    /// Whether all objects are meant.
    pub fn is_everything(&self) -> bool {
        self.names.is_empty()
            && self.namespace.is_none()
            && self.selector.is_everything()
            && self.only_kinds.is_empty()
            && self.skip_kinds.is_empty()
    }

    /// Whether this one is meant.
    pub fn selects(&self, kinds: &KindNames, candidate: &Candidate<'_>) -> bool {
        self.has_namespace(candidate.namespace)
            && self.has_kind(kinds, &candidate.gvk)
            && self.has_labels(candidate.object)
            && (self.names.is_empty() || self.names.iter().any(|name| candidate.is(kinds, name)))
    }

    /// Whether objects of this namespace are meant.
    pub fn has_namespace(&self, namespace: &str) -> bool {
        let wanted = self.namespace.as_deref();
        wanted.is_none_or(|wanted| wanted == namespace)
    }

    /// Whether objects of this kind are meant.
    pub fn has_kind(&self, kinds: &KindNames, gvk: &Gvk) -> bool {
        let is_one = |words: &[String]| words.iter().any(|word| kinds.is(word, gvk));
        (self.only_kinds.is_empty() || is_one(&self.only_kinds)) && !is_one(&self.skip_kinds)
    }

    /// Whether an object has the labels; what has no object has none.
    pub fn has_labels(&self, object: Option<&Object>) -> bool {
        let label = |key: &str| object.and_then(|object| object.label(key));
        self.selector.is_everything() || self.selector.matches(label)
    }

    /// Refuses whatever of the selection fits none of the candidates, alone or all together.
    ///
    /// A kind to skip needs no candidate, but must be one that somebody knows.
    pub fn check(
        &self,
        kinds: &KindNames,
        noun: Noun,
        candidates: &[Candidate<'_>],
    ) -> Result<(), NoMatch> {
        if self.is_everything() {
            return Ok(());
        }
        if let Some(refused) = NoMatch::find(self, kinds, noun, candidates) {
            return Err(refused);
        }
        let is_wanted = |one: &Candidate<'_>| self.selects(kinds, one);
        let only_skips = Self {
            skip_kinds: Vec::new(),
            ..self.clone()
        };
        if only_skips.is_everything() || candidates.iter().any(is_wanted) {
            return Ok(());
        }
        Err(NoMatch::together(self, noun))
    }
}

impl Candidate<'_> {
    /// Whether the name is this one's.
    pub fn is(&self, kinds: &KindNames, name: &ObjectName) -> bool {
        name.matches(kinds, &self.gvk, self.namespace, self.name)
    }
}
