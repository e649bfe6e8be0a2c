//! What a user can select in a rendered repository.

use std::collections::BTreeMap;

use portolan_flux::{Emitter, Rendering, Selectable, SelectableOwner};
use portolan_object::{KindNames, ObjectSelection};

use crate::RenderedRepository;
use crate::inventory::{self, PlacedObject};

/// Everything of a rendered repository that can be selected.
pub fn selectable<'a>(
    rendered: &'a RenderedRepository,
    placed: &'a [PlacedObject<'a>],
) -> Selectable<'a> {
    let renderings = rendered.clusters.iter();
    selectable_of(renderings.map(|(_, rendering)| rendering.as_ref()), placed)
}

/// Everything of rendered clusters that can be selected.
pub fn selectable_of<'a>(
    renderings: impl Iterator<Item = &'a Rendering>,
    placed: &'a [PlacedObject<'a>],
) -> Selectable<'a> {
    let owners: Vec<SelectableOwner<'a>> = renderings.flat_map(inventory::owners).collect();
    let place = |emitter: &Emitter| {
        let (kind, id) = (emitter.owner_kind().as_str(), emitter.id());
        owners.iter().position(|SelectableOwner { candidate, .. }| {
            candidate.gvk.kind == kind
                && id.namespace == candidate.namespace
                && id.name == candidate.name
        })
    };
    let mut places = BTreeMap::new();
    let mut objects = Vec::with_capacity(placed.len());
    for one in placed {
        let at = places.entry(&one.owner);
        if let Some(at) = *at.or_insert_with(|| place(&one.owner)) {
            objects.push((at, one.candidate()));
        }
    }
    Selectable {
        kinds: inventory::kind_names(placed),
        owners,
        objects,
    }
}

/// Whether the words for kinds are known without the repository's definitions.
pub fn has_known_kinds(objects: &ObjectSelection) -> bool {
    let names = KindNames::default();
    let mut words = objects.only_kinds.iter().chain(&objects.skip_kinds);
    words.all(|word| names.knows(word))
}
