//! Both sides as far as they are selected; a selection that fits nothing on either side is refused.
//!
//! What is equal on both sides is not rendered, so a name, label or kind that is not seen may be right all the same.
//! Then everything is rendered for which no chart has to be fetched, to see whether it is anywhere.

use portolan_flux::Selection;
use portolan_object::{KindNames, NoMatch, Object};

use super::two_sides::{ClusterSide, TwoSides};
use super::{DiffArgs, Trees};
use crate::error::CommandError;
use crate::inventory::{self, Placed};
use crate::printer::Printer;
use crate::selection::{has_known_kinds, selectable_of};

/// Both sides, and what is compared of them.
pub(super) struct Selected {
    pub(super) selection: Selection,
    /// What kinds are called.
    pub(super) kinds: KindNames,
    pub(super) two_sides: TwoSides,
}

impl Selected {
    pub(super) fn render(
        args: &DiffArgs,
        trees: &Trees,
        printer: &Printer,
    ) -> Result<Self, CommandError> {
        let selection = args.selected();
        let mut two_sides = TwoSides::render(args, trees, &selection.demand(), printer)?;
        args.refuse_empty_original(&two_sides)?;
        if selection.is_everything() {
            return Ok(Self {
                selection,
                kinds: KindNames::default(),
                two_sides,
            });
        }
        let mut checked = check(&selection, &two_sides);
        if let Some(wider) = selection.wider_demand().filter(|_| checked.is_err()) {
            two_sides = TwoSides::render(args, trees, &wider, printer)?;
            checked = check(&selection, &two_sides);
        }
        let is_sure = checked.is_ok()
            && has_known_kinds(&selection.objects)
            && selects_something(&selection, &two_sides);
        let kinds = if is_sure {
            inventory::kind_names(&placed(&two_sides))
        } else {
            let whole = TwoSides::render_whole(args, trees, printer)?;
            check(&selection, &whole)?;
            inventory::kind_names(&placed(&whole))
        };
        Ok(Self {
            selection,
            kinds,
            two_sides,
        })
    }
}

fn sides(two_sides: &TwoSides) -> impl Iterator<Item = &ClusterSide> {
    two_sides.new.values().chain(two_sides.old.values())
}

fn placed(two_sides: &TwoSides) -> Vec<Placed<'_>> {
    sides(two_sides)
        .flat_map(|cluster_side| inventory::objects_of(&cluster_side.cluster, cluster_side))
        .collect()
}

fn check(selection: &Selection, two_sides: &TwoSides) -> Result<(), NoMatch> {
    let placed = placed(two_sides);
    selection.check(&selectable_of(
        sides(two_sides).map(|cluster_side| &**cluster_side),
        &placed,
    ))
}

/// Whether something that was rendered is meant; owners alone count if nothing is asked of their objects.
fn selects_something(selection: &Selection, two_sides: &TwoSides) -> bool {
    let objects = &selection.objects;
    if objects.selector.is_everything() && objects.only_kinds.is_empty() {
        return true;
    }
    let placed = placed(two_sides);
    let kinds = inventory::kind_names(&placed);
    let is_meant = |placed: &Placed<'_>| {
        let (kind, id, object): (_, _, &Object) =
            (placed.owner.owner_kind(), placed.owner.id(), placed.object);
        let is_owner_meant = selection.selects_owner(&kinds, kind, id);
        selection.selects_object(&kinds, is_owner_meant, &placed.id, object)
    };
    placed.iter().any(is_meant)
}
