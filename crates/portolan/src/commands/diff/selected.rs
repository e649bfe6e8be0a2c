//! Both sides as far as they are selected; a selection that fits nothing on either side is refused.
//!
//! What is equal on both sides is not rendered, so a name, label or kind that is not seen may be right all the same.
//! Then everything is rendered for which no chart has to be fetched, to see whether it is anywhere.

use portolan_flux::Selection;
use portolan_object::{KindNames, NoMatch, Object};

use super::halves::{Half, Halves};
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
    pub(super) halves: Halves,
}

impl Selected {
    pub(super) fn render(
        args: &DiffArgs,
        trees: &Trees,
        printer: &Printer,
    ) -> Result<Self, CommandError> {
        let selection = args.selected();
        let mut halves = Halves::render(args, trees, &selection.demand(), printer)?;
        args.refuse_empty_original(&halves)?;
        if selection.is_everything() {
            return Ok(Self {
                selection,
                kinds: KindNames::default(),
                halves,
            });
        }
        let mut checked = check(&selection, &halves);
        if let Some(wider) = selection.wider_demand().filter(|_| checked.is_err()) {
            halves = Halves::render(args, trees, &wider, printer)?;
            checked = check(&selection, &halves);
        }
        let is_sure = checked.is_ok()
            && has_known_kinds(&selection.objects)
            && selects_something(&selection, &halves);
        let kinds = if is_sure {
            inventory::kind_names(&placed(&halves))
        } else {
            let whole = Halves::render_whole(args, trees, printer)?;
            check(&selection, &whole)?;
            inventory::kind_names(&placed(&whole))
        };
        Ok(Self {
            selection,
            kinds,
            halves,
        })
    }
}

fn sides(halves: &Halves) -> impl Iterator<Item = &Half> {
    halves.new.values().chain(halves.old.values())
}

fn placed(halves: &Halves) -> Vec<Placed<'_>> {
    sides(halves)
        .flat_map(|half| inventory::objects_of(&half.cluster, half))
        .collect()
}

fn check(selection: &Selection, halves: &Halves) -> Result<(), NoMatch> {
    let placed = placed(halves);
    selection.check(&selectable_of(sides(halves).map(|half| &**half), &placed))
}

/// Whether something that was rendered is meant; owners alone count if nothing is asked of their objects.
fn selects_something(selection: &Selection, halves: &Halves) -> bool {
    let objects = &selection.objects;
    if objects.selector.is_everything() && objects.only_kinds.is_empty() {
        return true;
    }
    let placed = placed(halves);
    let kinds = inventory::kind_names(&placed);
    let is_meant = |placed: &Placed<'_>| {
        let (kind, id, object): (_, _, &Object) =
            (placed.owner.owner_kind(), placed.owner.id(), placed.object);
        let is_owner_meant = selection.selects_owner(&kinds, kind, id);
        selection.selects_object(&kinds, is_owner_meant, &placed.id, object)
    };
    placed.iter().any(is_meant)
}
