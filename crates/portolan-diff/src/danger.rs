//! What a change would do that people should know before it is merged.
//!
//! A rule has a stable id, a level and an explanation. Each file below holds the rules of one topic as functions from a
//! changed object to findings.

mod access;
mod api;
mod deletion;
mod flux;
mod immutable;
mod privilege;
mod traffic;
mod world;

use portolan_object::{ObjectId, Place};
use portolan_yaml::{Node, Text};

use crate::field::Field;
use crate::mask::Mask;
use crate::pairing::{Owned, Pair};
use crate::path::Path;
use crate::report::Unserved;
use crate::side::Owner;

pub(crate) use world::World;

/// How grave a danger is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Flux or Kubernetes would refuse it, or data would be lost.
    Error,
    /// It works, and may not be what is meant.
    Warning,
    /// It is good to know.
    Note,
}

/// A kind of danger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name in reports; never changes.
    pub id: &'static str,
    /// How grave it usually is.
    pub level: Level,
    /// What it means, in a sentence.
    pub explanation: &'static str,
}

/// Something dangerous about one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Danger {
    /// The rule's name.
    pub id: &'static str,
    /// How grave it is here.
    pub level: Level,
    /// The object.
    pub object: ObjectId,
    /// Who renders it.
    pub owner: Owner,
    /// The field, where it is one.
    pub path: Option<Path>,
    /// What would happen.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Where the object is written.
    pub place: Option<Place>,
}

/// An object that differs, as the rules see it: whole and unmasked.
pub(crate) struct Subject<'a> {
    pub(crate) pair: Pair<'a>,
    pub(crate) fields: Vec<Field>,
}

/// Every rule.
pub const RULES: &[Rule] = &[
    immutable::FIELD,
    immutable::SHRUNK,
    immutable::DEFINITION_VERSION,
    deletion::VOLUME,
    deletion::NAMESPACE,
    deletion::DEFINITION,
    deletion::STATEFUL,
    deletion::MOVED,
    flux::PRUNE,
    flux::UNINSTALL,
    flux::ORPHANED,
    flux::SUSPENDED,
    traffic::SELECTOR,
    traffic::NO_PODS,
    traffic::ZERO,
    traffic::STALE,
    access::WIDENED,
    access::EVERYTHING,
    privilege::PRIVILEGED,
    api::REMOVED,
];

/// Everything dangerous about the changes, gravest first.
pub(crate) fn lint(
    subjects: &[Subject<'_>],
    world: &World<'_>,
    mask: &Mask,
    unserved: Option<&Unserved>,
) -> Vec<Danger> {
    let mut dangers = Vec::new();
    for subject in subjects {
        let mut finder = Finder {
            subject,
            dangers: &mut dangers,
        };
        immutable::lint(&mut finder);
        deletion::lint(&mut finder, world);
        flux::lint(&mut finder, world);
        traffic::lint(&mut finder, world);
        access::lint(&mut finder, world);
        privilege::lint(&mut finder);
        api::lint(&mut finder, unserved);
    }
    for danger in &mut dangers {
        danger.message = mask.text(&Text::from(danger.message.as_str())).to_string();
    }
    // The sort is stable: dangers of one level stay in the order of the changes.
    dangers.sort_by_key(|danger| danger.level);
    dangers
}

/// Takes down what the rules find about one object.
pub(crate) struct Finder<'a, 'd> {
    pub(crate) subject: &'a Subject<'a>,
    dangers: &'d mut Vec<Danger>,
}

impl<'a> Finder<'a, '_> {
    /// Reports a rule on the object.
    fn report(&mut self, rule: Rule, message: impl Into<String>) -> &mut Danger {
        let shown = self.subject.shown();
        self.dangers.push(Danger {
            id: rule.id,
            level: rule.level,
            object: shown.object.id().clone(),
            owner: shown.owner.clone(),
            path: None,
            message: message.into(),
            hint: None,
            place: shown.object.origin.place().cloned(),
        });
        let last = self.dangers.len() - 1;
        &mut self.dangers[last]
    }

    /// Both sides of a changed object.
    fn both(&self) -> Option<(Owned<'a>, Owned<'a>)> {
        match self.subject.pair {
            Pair::Both { old, new } => Some((old, new)),
            Pair::Added(_) | Pair::Removed(_) => None,
        }
    }

    /// The object that is there afterwards.
    fn after(&self) -> Option<Owned<'a>> {
        match self.subject.pair {
            Pair::Both { new, .. } | Pair::Added(new) => Some(new),
            Pair::Removed(_) => None,
        }
    }

    /// The object that will be gone.
    fn removed(&self) -> Option<Owned<'a>> {
        match self.subject.pair {
            Pair::Removed(old) => Some(old),
            Pair::Both { .. } | Pair::Added(_) => None,
        }
    }
}

impl Danger {
    fn at(&mut self, path: &Path) -> &mut Self {
        self.path = Some(path.clone());
        self
    }

    fn hint(&mut self, hint: impl Into<String>) -> &mut Self {
        self.hint = Some(hint.into());
        self
    }

    fn level(&mut self, level: Level) -> &mut Self {
        self.level = level;
        self
    }
}

impl<'a> Subject<'a> {
    /// The object as it is shown: the new one while there is one.
    pub(crate) fn shown(&self) -> Owned<'a> {
        let (Pair::Added(shown) | Pair::Removed(shown) | Pair::Both { new: shown, .. }) = self.pair;
        shown
    }
}

impl Level {
    /// The word for it: `error`, `warning` or `note`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// The text at a path of keys.
fn text<'n>(node: &'n Node, path: &[&str]) -> Option<&'n str> {
    node.at_path(path).and_then(Node::as_str)
}
