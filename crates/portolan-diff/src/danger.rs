//! Dangerous effects of a change that people should know before they merge it.
//!
//! Each file below holds the rules of one topic as functions from a changed object to findings.

mod access;
mod api;
mod deletion;
mod flux;
mod immutable;
mod privilege;
mod traffic;
mod world;

use std::cmp::Reverse;

use portolan_object::{FieldPath, Finding, Rule, Severity};
use portolan_yaml::{Node, Text};

use crate::field::Field;
use crate::mask::Mask;
use crate::pairing::{Owned, Pair};
use crate::report::Unserved;

pub(crate) use world::World;

/// An object that differs, as the rules see it: whole and unmasked.
pub(crate) struct Subject<'a> {
    pub(crate) pair: Pair<'a>,
    pub(crate) fields: Vec<Field>,
}

/// Every rule.
pub const RULES: &[&Rule] = &[
    &immutable::FIELD,
    &immutable::SHRUNK,
    &immutable::DEFINITION_VERSION,
    &deletion::VOLUME,
    &deletion::NAMESPACE,
    &deletion::DEFINITION,
    &deletion::STATEFUL,
    &deletion::MOVED,
    &flux::PRUNE,
    &flux::UNINSTALL,
    &flux::ORPHANED,
    &flux::SUSPENDED,
    &traffic::SELECTOR,
    &traffic::NO_PODS,
    &traffic::ZERO,
    &traffic::STALE,
    &access::WIDENED,
    &access::EVERYTHING,
    &privilege::PRIVILEGED,
    &api::REMOVED,
];

/// Everything dangerous about the changes, gravest first.
pub(crate) fn lint(
    subjects: &[Subject<'_>],
    world: &World<'_>,
    mask: &Mask,
    unserved: Option<&Unserved>,
) -> Vec<Finding> {
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
        for message in &mut danger.messages {
            *message = mask.text(&Text::from(message.as_str())).to_string();
        }
    }
    // The sort is stable: dangers of one severity stay in the order of the changes.
    dangers.sort_by_key(|danger| Reverse(danger.severity));
    dangers
}

/// Takes down what the rules find about one object.
pub(crate) struct Finder<'a, 'd> {
    pub(crate) subject: &'a Subject<'a>,
    dangers: &'d mut Vec<Finding>,
}

impl<'a> Finder<'a, '_> {
    /// Reports a rule on the object.
    fn report(&mut self, rule: &'static Rule, message: impl Into<String>) -> Reported<'_> {
        let shown = self.subject.shown();
        let finding = Finding {
            object: Some(shown.object.id().clone()),
            owner: Some(shown.owner.clone()),
            place: shown.object.place(),
            ..Finding::new(rule, message)
        };
        self.dangers.push(finding);
        let last = self.dangers.len() - 1;
        Reported(&mut self.dangers[last])
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

/// A finding just reported, to say more about.
struct Reported<'a>(&'a mut Finding);

impl Reported<'_> {
    fn at(self, path: &FieldPath) -> Self {
        self.0.field = Some(path.dotted().to_string());
        self
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    fn severity(self, severity: Severity) -> Self {
        self.0.severity = severity;
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

/// The text at a path of keys.
fn text<'n>(node: &'n Node, path: &[&str]) -> Option<&'n str> {
    node.at_path(path).and_then(Node::as_str)
}
