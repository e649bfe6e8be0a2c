//! Which container images are added, removed and changed.

use std::collections::BTreeMap;

use portolan_object::{ImageRef, Object, ObjectId, images};
use portolan_yaml::Text;

use crate::mask::Mask;
use crate::pairing::{Owned, Pair};

/// An image that objects name in another version, newly, or no more.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageChange {
    /// Registry and repository as people write them; the whole reference when it is none.
    pub name: Text,
    /// The old reference.
    pub from: Option<Text>,
    /// The new reference.
    pub to: Option<Text>,
    /// The objects that name it.
    pub objects: Vec<ObjectId>,
}

/// References of one object by image name.
type Named = BTreeMap<String, Vec<Text>>;

/// The image changes of all pairs, by name.
pub(crate) fn image_changes(pairs: &[Pair<'_>], mask: &Mask) -> Vec<ImageChange> {
    let mut found: BTreeMap<(String, Option<Text>, Option<Text>), Vec<ObjectId>> = BTreeMap::new();
    for pair in pairs {
        let (old, new) = match *pair {
            Pair::Added(new) => (None, Some(new)),
            Pair::Removed(old) => (Some(old), None),
            Pair::Both { old, new } => (Some(old), Some(new)),
        };
        let Some(id) = new.or(old).map(|owned| owned.object.id()) else {
            continue;
        };
        for (name, from, to) in changes(&named(old), &named(new)) {
            found.entry((name, from, to)).or_default().push(id.clone());
        }
    }
    let change = |((name, from, to), mut objects): ((String, _, _), Vec<ObjectId>)| {
        objects.sort();
        objects.dedup();
        let clean = |text: Option<Text>| text.map(|text| mask.text(&text));
        ImageChange {
            name: mask.text(&Text::from(name)),
            from: clean(from),
            to: clean(to),
            objects,
        }
    };
    found.into_iter().map(change).collect()
}

fn named(owned: Option<Owned<'_>>) -> Named {
    let mut named = Named::new();
    for reference in owned.into_iter().flat_map(|owned| references(owned.object)) {
        let parsed = reference.parse::<ImageRef>();
        let name = parsed.map_or_else(|_| reference.to_string(), |image| image.familiar_name());
        let references = named.entry(name).or_default();
        if !references.contains(&reference) {
            references.push(reference);
        }
    }
    named
}

fn references(object: &Object) -> Vec<Text> {
    let images = images(object.gvk(), object.node());
    images.into_iter().map(|image| image.reference).collect()
}

/// What changed for each name: references that only one side has, paired in order.
fn changes(old: &Named, new: &Named) -> Vec<(String, Option<Text>, Option<Text>)> {
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let none = Vec::new();
    let mut changes = Vec::new();
    for name in names {
        let before = old.get(name).unwrap_or(&none);
        let after = new.get(name).unwrap_or(&none);
        let gone: Vec<&Text> = before.iter().filter(|one| !after.contains(one)).collect();
        let come: Vec<&Text> = after.iter().filter(|one| !before.contains(one)).collect();
        for place in 0..gone.len().max(come.len()) {
            let at = |references: &[&Text]| references.get(place).map(|text| (*text).clone());
            changes.push((name.clone(), at(&gone), at(&come)));
        }
    }
    changes
}
