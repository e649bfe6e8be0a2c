//! The error for a name, namespace, label or kind that nothing has: the nearest one, and how to list all.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::kind::kind_names::{KindNames, built_in_words};
use crate::selection::nearest::{distance, nearest};
use crate::selection::object_name::ObjectName;
use crate::selection::object_selection::{Candidate, ObjectSelection};
use crate::selection::selector::{Requirement, Selector};

/// What candidates are called, and how to list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noun {
    /// `HelmRelease`, `object`
    pub singular: &'static str,
    /// The command that lists all of them.
    pub list_command: &'static str,
}

/// Why nothing is selected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct NoMatch {
    message: String,
    hint: Option<String>,
}

/// How many labels or kinds a hint names.
const NAMED: usize = 8;

/// A word that is this far from another is taken for a slip of the finger.
const NEAR: usize = 3;

impl NoMatch {
    /// What may have been meant, or how to see what there is.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The same with another hint.
    #[must_use]
    pub fn with_hint(self, hint: String) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }

    /// The same with one more piece of advice, if there is one.
    #[must_use]
    pub fn with_more(mut self, advice: Option<String>) -> Self {
        if let Some(advice) = advice {
            self.hint = Some(match self.hint {
                Some(hint) => format!("{hint}; {advice}"),
                None => advice,
            });
        }
        self
    }

    /// A word that is no kind of Kubernetes, of Flux, of a definition or of a candidate; `None` if all are.
    pub fn unknown_kind(
        selection: &ObjectSelection,
        kinds: &KindNames,
        candidates: &[Candidate<'_>],
    ) -> Option<Self> {
        let is_there = |word: &str| candidates.iter().any(|one| kinds.is(word, &one.gvk));
        let mut words = selection.only_kinds.iter().chain(&selection.skip_kinds);
        let word = words.find(|word| !kinds.knows(word) && !is_there(word))?;
        let there = candidates.iter().map(|one| one.gvk.kind.as_str());
        let known = there.chain(kinds.defined()).chain(built_in_words());
        let lower = word.to_ascii_lowercase();
        let far = |kind: &&str| distance(&lower, &kind.to_ascii_lowercase());
        let near = known
            .min_by_key(far)
            .filter(|kind| far(kind) <= NEAR.min(word.len() / 2));
        Some(Self {
            message: format!("no kind is called `{word}`"),
            hint: Some(near.map_or_else(
                || "`portolan get objects` lists all objects with their kinds".to_owned(),
                |kind| format!("did you mean `{kind}`?"),
            )),
        })
    }

    /// The names that no candidate has; what is near is of the kind that they say.
    pub fn object_names(
        noun: Noun,
        kinds: &KindNames,
        wanted: &[&ObjectName],
        candidates: &[Candidate<'_>],
    ) -> Self {
        let is_of_kind = |one: &&Candidate<'_>| {
            let mut words = wanted.iter().filter_map(|name| name.kind_word());
            words.any(|word| kinds.is(word, &one.gvk))
        };
        let name = |one: &Candidate<'_>| (one.namespace.to_owned(), one.name.to_owned());
        let mut known: Vec<_> = candidates.iter().filter(is_of_kind).map(name).collect();
        let word = wanted.iter().find_map(|name| name.kind_word());
        let list_command = match word.filter(|_| !known.is_empty()) {
            Some(word) => format!("portolan get {word}"),
            None => noun.list_command.to_owned(),
        };
        if known.is_empty() {
            known = candidates.iter().map(name).collect();
        }
        let known = known
            .iter()
            .map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        Self::names_listed(noun.singular, &list_command, &wanted, known)
    }

    /// The names that nothing has.
    pub fn names<'a>(
        noun: Noun,
        wanted: &[impl AsRef<str>],
        known: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        Self::names_listed(noun.singular, noun.list_command, wanted, known)
    }

    fn names_listed<'a>(
        singular: &str,
        list_command: &str,
        wanted: &[impl AsRef<str>],
        known: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let known: BTreeSet<(&str, &str)> = known.into_iter().collect();
        let quoted: Vec<&str> = wanted.iter().map(AsRef::as_ref).collect();
        let message = format!("no {singular} named `{}`", quoted.join("`, `"));
        let names: Vec<&str> = quoted
            .iter()
            .map(|text| text.rsplit('/').next().unwrap_or(text))
            .collect();
        let near = nearest(&names, known.iter(), |(_, name)| name);
        let all = known.len();
        let hint = match near {
            Some(("", name)) if all == 1 => format!("there is only `{name}`"),
            Some((namespace, name)) if all == 1 => {
                format!("there is only `{name}` in {namespace}")
            }
            Some(("", name)) => {
                format!("there is `{name}`; `{list_command}` lists all {all}")
            }
            Some((namespace, name)) => {
                format!("there is `{name}` in {namespace}; `{list_command}` lists all {all}")
            }
            None => format!("there is no {singular} at all"),
        };
        Self {
            message,
            hint: Some(hint),
        }
    }

    /// The namespace that nothing lies in.
    pub fn namespace<'a>(
        noun: Noun,
        wanted: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known = known.into_iter().filter(|name| !name.is_empty());
        let hint = match nearest(&[wanted], known, |name| name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("no {} has a namespace", noun.singular),
        };
        Self {
            message: format!("no {} is in the namespace `{wanted}`", noun.singular),
            hint: Some(hint),
        }
    }

    /// The first part of a selection that no candidate has by itself.
    pub(crate) fn find(
        selection: &ObjectSelection,
        kinds: &KindNames,
        noun: Noun,
        candidates: &[Candidate<'_>],
    ) -> Option<Self> {
        if let Some(wanted) = &selection.namespace {
            let known = candidates.iter().map(|one| one.namespace);
            if !known.clone().any(|namespace| namespace == wanted) {
                return Some(Self::namespace(noun, wanted, known));
            }
        }
        let is_it = |name: &ObjectName, one: &Candidate<'_>| {
            one.is(kinds, name) && selection.has_namespace(one.namespace)
        };
        let is_missing = |name: &&ObjectName| !candidates.iter().any(|one| is_it(name, one));
        let missing: Vec<&ObjectName> = selection.names.iter().filter(is_missing).collect();
        if !missing.is_empty() {
            return Some(Self::object_names(noun, kinds, &missing, candidates));
        }
        Self::kinds(selection, kinds, noun, candidates)
            .or_else(|| Self::labels(&selection.selector, noun, candidates))
    }

    /// Each part of a selection fits something, but nothing fits all.
    pub(crate) fn together(selection: &ObjectSelection, noun: Noun) -> Self {
        let mut parts = Vec::new();
        let names: Vec<String> = selection.names.iter().map(ToString::to_string).collect();
        if !names.is_empty() {
            parts.push(format!("the name `{}`", names.join("` or `")));
        }
        if let Some(namespace) = &selection.namespace {
            parts.push(format!("the namespace `{namespace}`"));
        }
        if !selection.selector.is_everything() {
            parts.push(format!("the labels `{}`", selection.selector));
        }
        if !selection.only_kinds.is_empty() {
            parts.push(format!(
                "the kind `{}`",
                selection.only_kinds.join("` or `")
            ));
        }
        if !selection.skip_kinds.is_empty() {
            let kinds = selection.skip_kinds.join("` nor `");
            parts.push(format!("a kind other than `{kinds}`"));
        }
        let together = parts.len() > 1;
        Self {
            message: format!("no {} has {}", noun.singular, parts.join(" and ")),
            hint: together.then(|| "each of them is there, but not together".to_owned()),
        }
    }

    fn kinds(
        selection: &ObjectSelection,
        kinds: &KindNames,
        noun: Noun,
        candidates: &[Candidate<'_>],
    ) -> Option<Self> {
        if let Some(unknown) = Self::unknown_kind(selection, kinds, candidates) {
            return Some(unknown);
        }
        let is_there = |word: &str| candidates.iter().any(|one| kinds.is(word, &one.gvk));
        let mut only = selection.only_kinds.iter();
        let word = only.find(|word| !is_there(word))?;
        let mut there: Vec<&str> = candidates.iter().map(|one| one.gvk.kind.as_str()).collect();
        there.sort_unstable();
        there.dedup();
        Some(Self {
            message: format!("no {} is of the kind `{word}`", noun.singular),
            hint: listed("there are", &there),
        })
    }

    fn labels(selector: &Selector, noun: Noun, candidates: &[Candidate<'_>]) -> Option<Self> {
        let holds = |selector: &Selector| {
            candidates
                .iter()
                .any(|one| selector.matches(|key| one.object.and_then(|object| object.label(key))))
        };
        if selector.is_everything() || holds(selector) {
            return None;
        }
        let mut alone = selector.requirements().iter();
        let wrong = alone.find(|one| !holds(&Selector::new(vec![(*one).clone()])));
        let hint = match wrong {
            Some(requirement) => label_hint(requirement, candidates),
            None => Some("each of these labels is there, but not together".to_owned()),
        };
        Some(Self {
            message: format!("no {} has the labels `{selector}`", noun.singular),
            hint,
        })
    }
}

/// The values that a label has, or the label that is near.
fn label_hint(requirement: &Requirement, candidates: &[Candidate<'_>]) -> Option<String> {
    let (mut keys, mut values) = (BTreeSet::new(), BTreeSet::new());
    for object in candidates.iter().filter_map(|one| one.object) {
        for (key, value) in object.labels() {
            keys.insert(key);
            if key == requirement.key() {
                values.insert(value);
            }
        }
    }
    if values.is_empty() {
        let key = requirement.key();
        let near = nearest(&[key], keys.iter().copied(), |key| key)?;
        if distance(key, near) <= NEAR.min(key.len() / 2) {
            return Some(format!("did you mean the label `{near}`?"));
        }
        let keys: Vec<&str> = keys.into_iter().collect();
        return listed("there are the labels", &keys);
    }
    let values: Vec<&str> = values.into_iter().collect();
    listed(&format!("`{}` is", requirement.key()), &values)
}

/// `there are Deployment, Service and 3 more`
fn listed(what: &str, names: &[&str]) -> Option<String> {
    let named = names.iter().take(NAMED).copied().collect::<Vec<_>>();
    let named = named.join(", ");
    match names.len().saturating_sub(NAMED) {
        0 if names.is_empty() => None,
        0 => Some(format!("{what} {named}")),
        more => Some(format!("{what} {named} and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use crate::origin::Origin;
    use portolan_yaml::{Dialect, parse_one};

    const NOUN: Noun = Noun {
        singular: "object",
        list_command: "portolan get objects",
    };

    fn objects() -> Vec<Object> {
        let texts = [
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, labels: {app: web}}\n",
            "apiVersion: v1\nkind: Service\nmetadata: {name: api, namespace: back, labels: {app: api, tier: low}}\n",
        ];
        texts
            .iter()
            .map(|text| {
                Object::new(
                    parse_one(*text, Dialect::Kustomize).unwrap(),
                    Origin::default(),
                )
                .unwrap()
            })
            .collect()
    }

    fn check(selection: &ObjectSelection) -> String {
        let objects = objects();
        let candidates: Vec<Candidate<'_>> = objects
            .iter()
            .map(|object| Candidate {
                gvk: object.gvk().clone(),
                namespace: object.namespace(),
                name: object.name(),
                object: Some(object),
            })
            .collect();
        match selection.check(&KindNames::default(), NOUN, &candidates) {
            Ok(()) => "found".to_owned(),
            Err(error) => format!("{error}; {}", error.hint().unwrap_or_default()),
        }
    }

    fn kinds(only: &str, skip: &str) -> ObjectSelection {
        let words = |text: &str| {
            text.split(',')
                .filter(|one| !one.is_empty())
                .map(str::to_owned)
                .collect()
        };
        ObjectSelection {
            only_kinds: words(only),
            skip_kinds: words(skip),
            ..ObjectSelection::default()
        }
    }

    #[test]
    fn what_nothing_has_is_told_with_the_nearest() {
        let named = |name: &str| ObjectSelection {
            names: vec![name.parse().unwrap()],
            ..ObjectSelection::default()
        };
        assert_eq!(check(&named("deploy/web")), "found");
        assert_eq!(
            check(&named("wbe")),
            "no object named `wbe`; there is `web` in shop; `portolan get objects` lists all 2"
        );
        let namespace = ObjectSelection {
            namespace: Some("sohp".to_owned()),
            ..ObjectSelection::default()
        };
        assert_eq!(
            check(&namespace),
            "no object is in the namespace `sohp`; did you mean `shop`?"
        );
    }

    #[test]
    fn a_kind_has_to_be_there_and_one_to_skip_to_be_known() {
        assert_eq!(check(&kinds("deploy", "")), "found");
        assert_eq!(check(&kinds("", "secrets")), "found");
        assert_eq!(
            check(&kinds("sts", "")),
            "no object is of the kind `sts`; there are Deployment, Service"
        );
        assert_eq!(
            check(&kinds("Deploymnet", "")),
            "no kind is called `Deploymnet`; did you mean `Deployment`?"
        );
        assert_eq!(
            check(&kinds("", "Secrt")),
            "no kind is called `Secrt`; did you mean `Secret`?"
        );
    }

    #[test]
    fn labels_are_told_with_their_keys_and_values() {
        let labels = |text: &str| ObjectSelection {
            selector: text.parse().unwrap(),
            ..ObjectSelection::default()
        };
        assert_eq!(check(&labels("app=web")), "found");
        assert_eq!(
            check(&labels("app=wbe")),
            "no object has the labels `app=wbe`; `app` is api, web"
        );
        assert_eq!(
            check(&labels("tire=low")),
            "no object has the labels `tire=low`; did you mean the label `tier`?"
        );
        assert_eq!(
            check(&labels("app=web,tier=low")),
            "no object has the labels `app=web,tier=low`; each of these labels is there, but not together"
        );
    }

    #[test]
    fn parts_that_nothing_has_together_are_named() {
        let selection = ObjectSelection {
            namespace: Some("shop".to_owned()),
            ..kinds("svc", "")
        };
        assert_eq!(
            check(&selection),
            "no object has the namespace `shop` and the kind `svc`; each of them is there, but not together"
        );
    }
}
