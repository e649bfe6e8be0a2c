//! The selected part of both sides; a selection that matches nothing on either side is refused.
//!
//! What is equal on both sides is not rendered, so a name, label or kind that was not found may still exist. Then
//! everything that needs no fetched chart is rendered, to find out.

use portolan_flux::{Depth, Selection, Walked};
use portolan_object::{KindNames, NoMatch, Object};

use super::two_sides::{ClusterSide, Skipping, TwoSides};
use super::{CompareOptions, Trees};
use crate::inventory::{self, PlacedObject};
use crate::rendered::advice_on_unrendered;
use crate::selectable::{has_known_kinds, selectable_of};
use crate::{FluxRepository, ReviewError, Runner};

/// Both sides, and what is compared of them.
pub(super) struct Selected {
    /// What kinds are called.
    pub(super) kinds: KindNames,
    pub(super) two_sides: TwoSides,
}

impl Selected {
    pub(super) fn render<R: Runner>(
        repository: &FluxRepository,
        trees: &Trees,
        options: &CompareOptions,
        runner: &R,
    ) -> Result<Self, R::Error> {
        let CompareOptions {
            selection,
            skipping,
            ..
        } = options;
        let demand = selection.demand();
        let mut two_sides = TwoSides::render(repository, trees, &demand, *skipping, runner)?;
        refuse_empty_original(trees, &two_sides)?;
        if selection.is_everything() {
            return Ok(Self {
                kinds: KindNames::default(),
                two_sides,
            });
        }
        let mut checked = check(selection, &two_sides);
        if let Some(wider) = selection.wider_demand().filter(|_| checked.is_err()) {
            two_sides = TwoSides::render(repository, trees, &wider, *skipping, runner)?;
            checked = check(selection, &two_sides);
        }
        let is_sure = checked.is_ok()
            && has_known_kinds(&selection.objects)
            && selects_something(selection, &two_sides);
        let kinds = if is_sure {
            inventory::kind_names(&placed(&two_sides))
        } else {
            let (at_hand, demand) = (repository.at_hand(), Depth::Releases.into());
            let whole = TwoSides::render(&at_hand, trees, &demand, Skipping::Off, runner)?;
            check(selection, &whole).map_err(ReviewError::from)?;
            inventory::kind_names(&placed(&whole))
        };
        Ok(Self { kinds, two_sides })
    }
}

/// Refuses a directory to compare with that Flux would apply nothing of.
fn refuse_empty_original(trees: &Trees, two_sides: &TwoSides) -> Result<(), ReviewError> {
    if !trees.is_old_named {
        return Ok(());
    }
    let is_empty = |walked: &Walked| {
        let built = walked.built.as_ref();
        built.is_some_and(|built| built.objects.is_empty())
    };
    let mut sides = two_sides.old.values();
    if sides.any(|side| !side.walk.kustomizations.values().all(is_empty)) {
        return Ok(());
    }
    let (old, _) = trees.title.split_once(" → ").unwrap_or((&trees.title, ""));
    let error = ReviewError::refused(format!("`{old}` holds nothing that Flux would apply"));
    Err(error.hint(
        "--path-orig names another checkout, or with --path the same cluster's directory in it",
    ))
}

fn sides(two_sides: &TwoSides) -> impl Iterator<Item = &ClusterSide> {
    two_sides.new.values().chain(two_sides.old.values())
}

fn placed(two_sides: &TwoSides) -> Vec<PlacedObject<'_>> {
    sides(two_sides)
        .flat_map(|cluster_side| inventory::objects_of(&cluster_side.cluster, cluster_side))
        .collect()
}

fn check(selection: &Selection, two_sides: &TwoSides) -> Result<(), NoMatch> {
    let placed = placed(two_sides);
    let renderings = || sides(two_sides).map(|cluster_side| &**cluster_side);
    let checked = selection.check(&selectable_of(renderings(), &placed));
    checked.map_err(|error| {
        let advice = advice_on_unrendered(renderings());
        error.with_more(advice.filter(|_| selection.may_name_objects()))
    })
}

/// Whether something that was rendered is meant; owners alone count if nothing is asked of their objects.
fn selects_something(selection: &Selection, two_sides: &TwoSides) -> bool {
    let objects = &selection.objects;
    if objects.selector.is_everything() && objects.only_kinds.is_empty() {
        return true;
    }
    let placed = placed(two_sides);
    let kinds = inventory::kind_names(&placed);
    let is_meant = |placed: &PlacedObject<'_>| {
        let (kind, id, object): (_, _, &Object) =
            (placed.owner.owner_kind(), placed.owner.id(), placed.object);
        let is_owner_meant = selection.selects_owner(&kinds, kind, id);
        selection.selects_object(&kinds, is_owner_meant, &placed.id, object)
    };
    placed.iter().any(is_meant)
}
