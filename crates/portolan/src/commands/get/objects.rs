//! `get objects`: everything that is rendered; as YAML or JSON the objects themselves.

use portolan_flux::OBJECT;
use portolan_review::inventory::{self, PlacedObject};
use portolan_yaml::Node;

use super::Question;
use crate::error::CommandError;
use crate::listing::{Column, Entry, Listing};
use crate::table::Cell;

pub(super) fn list(question: &Question<'_>) -> Result<Listing, CommandError> {
    let mut listing = Listing::new(
        "ObjectList",
        question.columns(
            true,
            &[
                Column::Always("KIND"),
                Column::Always("NAME"),
                Column::Always("OWNER"),
                Column::Wide("API VERSION"),
                Column::Wide("ORIGIN"),
            ],
        ),
    );
    for placed in chosen(question, &inventory::objects(question.rendered))? {
        listing.push(entry(question, placed));
    }
    Ok(listing)
}

/// The objects as YAML documents.
pub(super) fn documents(question: &Question<'_>) -> Result<String, CommandError> {
    let mut text = String::new();
    for placed in chosen(question, &inventory::objects(question.rendered))? {
        let node = question.view.show(placed);
        let yaml = portolan_yaml::write_kustomize(&node).map_err(CommandError::user)?;
        text.push_str("---\n");
        text.push_str(&yaml);
    }
    Ok(text)
}

fn chosen<'a>(
    question: &Question<'_>,
    all: &'a [PlacedObject<'a>],
) -> Result<Vec<&'a PlacedObject<'a>>, CommandError> {
    let all = all.iter().map(|placed| (placed.candidate(), placed));
    question.chosen(OBJECT, all.collect())
}

fn entry(question: &Question<'_>, placed: &PlacedObject<'_>) -> Entry {
    let id = &placed.id;
    let cells = vec![
        Cell::whole(id.gvk.kind.as_str()),
        Cell::name(id.name.as_str()),
        placed.owner.to_string().into(),
        id.gvk.api_version().into(),
        placed.object.origin().to_relative().into(),
    ];
    let group = &id.gvk.group;
    let dot = if group.is_empty() { "" } else { "." };
    let record: Node = question.view.show(placed).into_owned();
    Entry {
        cells: question.cells(&placed.cluster.name, Some(&id.namespace), cells),
        record,
        name: format!("{}{dot}{group}/{}", id.gvk.kind.to_lowercase(), id.name),
    }
}
