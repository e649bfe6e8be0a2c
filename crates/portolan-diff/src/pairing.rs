//! Which object of the old side is which of the new: matched by identity, and generated objects by the name before
//! the hash.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_object::{Object, Owner};
use portolan_yaml::Text;

use crate::side::Batch;

/// An object with its owner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owned<'a> {
    pub(crate) object: &'a Object,
    pub(crate) owner: &'a Owner,
}

/// An object of the old side, of the new side, or of both.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pair<'a> {
    Added(Owned<'a>),
    Removed(Owned<'a>),
    Both { old: Owned<'a>, new: Owned<'a> },
}

/// What is one object to Kubernetes: the version does not count.
type Identity<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

/// Pairs the objects of two sides. Owners whose objects both sides share are left out: nothing differs there.
pub(crate) fn pair<'a>(old: &'a [Batch], new: &'a [Batch]) -> Vec<Pair<'a>> {
    let mut found: BTreeMap<Identity<'_>, (Vec<Owned<'a>>, Vec<Owned<'a>>)> = BTreeMap::new();
    for owned in unshared(old, new) {
        found.entry(identity(owned)).or_default().0.push(owned);
    }
    for owned in unshared(new, old) {
        found.entry(identity(owned)).or_default().1.push(owned);
    }
    let mut pairs = Vec::new();
    for (old, new) in found.into_values() {
        pair_same(old, new, &mut pairs);
    }
    pair_generated(pairs)
}

fn unshared<'a>(batches: &'a [Batch], others: &'a [Batch]) -> impl Iterator<Item = Owned<'a>> {
    let shared: BTreeMap<&Owner, &Arc<Vec<Object>>> = others
        .iter()
        .map(|batch| (&batch.owner, &batch.objects))
        .collect();
    let is_shared = move |batch: &&Batch| {
        let other = shared.get(&batch.owner);
        !other.is_some_and(|other| Arc::ptr_eq(other, &batch.objects))
    };
    batches.iter().filter(is_shared).flat_map(|batch| {
        let owner = &batch.owner;
        batch
            .objects
            .iter()
            .map(move |object| Owned { object, owner })
    })
}

fn identity(owned: Owned<'_>) -> Identity<'_> {
    let id = owned.object.id();
    (
        &owned.owner.cluster,
        &id.gvk.group,
        &id.gvk.kind,
        &id.namespace,
        &id.name,
    )
}

/// Pairs objects of one identity: those of the same owner first, for several owners may declare the same object.
fn pair_same<'a>(old: Vec<Owned<'a>>, mut new: Vec<Owned<'a>>, pairs: &mut Vec<Pair<'a>>) {
    let mut unpaired = Vec::new();
    for old in old {
        match new.iter().position(|new| new.owner == old.owner) {
            Some(at) => pairs.push(Pair::Both {
                old,
                new: new.remove(at),
            }),
            None => unpaired.push(old),
        }
    }
    let mut new = new.into_iter();
    for old in unpaired {
        pairs.push(match new.next() {
            Some(new) => Pair::Both { old, new },
            None => Pair::Removed(old),
        });
    }
    pairs.extend(new.map(Pair::Added));
}

/// A generated ConfigMap or Secret without its hash: cluster, kind, namespace and base name.
type Base<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Makes one pair of a removed and an added object that differ by the hash in their names.
fn pair_generated(pairs: Vec<Pair<'_>>) -> Vec<Pair<'_>> {
    let mut added: BTreeMap<Base<'_>, Vec<Owned<'_>>> = BTreeMap::new();
    let mut rest = Vec::new();
    for pair in pairs {
        match pair {
            Pair::Added(owned) if base(owned).is_some() => {
                added
                    .entry(base(owned).unwrap_or_default())
                    .or_default()
                    .push(owned);
            }
            other => rest.push(other),
        }
    }
    for pair in &mut rest {
        let Pair::Removed(old) = *pair else { continue };
        let candidates = base(old).and_then(|base| added.get_mut(&base));
        let Some(candidates) = candidates.filter(|candidates| !candidates.is_empty()) else {
            continue;
        };
        let same_owner = candidates.iter().position(|new| new.owner == old.owner);
        let new = candidates.remove(same_owner.unwrap_or(0));
        *pair = Pair::Both { old, new };
    }
    rest.extend(added.into_values().flatten().map(Pair::Added));
    rest
}

fn base(owned: Owned<'_>) -> Option<Base<'_>> {
    let id = owned.object.id();
    let generated = id.gvk.group.is_empty() && matches!(&*id.gvk.kind, "ConfigMap" | "Secret");
    let name = base_name(&id.name).filter(|_| generated)?;
    Some((&owned.owner.cluster, &id.gvk.kind, &id.namespace, name))
}

/// The name before the hash that kustomize appends: ten letters of its own alphabet.
pub(crate) fn base_name(name: &str) -> Option<&str> {
    let (base, hash) = name.rsplit_once('-')?;
    let is_hash = hash.len() == 10 && hash.bytes().all(|byte| b"2456789bcdfghkmt".contains(&byte));
    (is_hash && !base.is_empty()).then_some(base)
}

/// An object's name for people, without the hash of a generated one.
pub(crate) fn stable_name(name: &Text) -> &str {
    base_name(name).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_generated_name_is_known_by_its_letters() {
        assert_eq!(base_name("quay-settings-5bm2fd8m6g"), Some("quay-settings"));
        assert_eq!(base_name("quay-settings-production"), None);
        assert_eq!(base_name("web-6f7b9c5d44"), Some("web"));
        assert_eq!(base_name("5bm2fd8m6g"), None);
    }
}
