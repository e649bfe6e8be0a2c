//! `get objects`: everything that is rendered; as YAML or JSON the objects themselves.

use portolan_flux::api::NamespacedName;
use portolan_yaml::Node;

use super::Question;
use crate::error::CommandError;
use crate::inventory::{self, Placed};
use crate::listing::{Column, Entry, Listing};
use crate::suggestion::not_found;
use crate::table::Cell;

pub(super) fn list(question: &Question<'_>) -> Listing {
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
    for placed in chosen(question) {
        listing.push(entry(question, &placed));
    }
    listing
}

/// The objects as YAML documents.
pub(super) fn documents(question: &Question<'_>) -> Result<String, CommandError> {
    let mut text = String::new();
    let chosen = chosen(question);
    if chosen.is_empty() && !question.names.is_empty() {
        return Err(unknown(question));
    }
    for placed in chosen {
        let node = question.view.show(&placed);
        let yaml = portolan_yaml::write_kustomize(&node).map_err(CommandError::user)?;
        text.push_str("---\n");
        text.push_str(&yaml);
    }
    Ok(text)
}

pub(super) fn unknown(question: &Question<'_>) -> CommandError {
    let known: Vec<_> = inventory::objects(question.rendered)
        .into_iter()
        .map(|placed| NamespacedName {
            namespace: placed.id.namespace,
            name: placed.id.name,
        })
        .collect();
    not_found("object", question.names, &known, "portolan get objects")
}

fn chosen<'a>(question: &Question<'a>) -> Vec<Placed<'a>> {
    let mut placed = inventory::objects(question.rendered);
    placed.retain(|placed| {
        question.selection.has_namespace(&placed.id.namespace)
            && question.selection.has_labels(Some(placed.object))
            && (question.names.is_empty() || is_named(question.names, placed))
    });
    placed
}

/// `NAME`, `NAMESPACE/NAME`, `KIND/NAME` or `KIND/NAMESPACE/NAME`.
fn is_named(names: &[String], placed: &Placed<'_>) -> bool {
    let id = &placed.id;
    let is_kind = |text: &str| text.eq_ignore_ascii_case(&id.gvk.kind);
    names.iter().any(|name| {
        let parts: Vec<&str> = name.split('/').collect();
        match parts.as_slice() {
            [name] => id.name == *name,
            [first, name] => id.name == *name && (id.namespace == *first || is_kind(first)),
            [kind, namespace, name] => {
                is_kind(kind) && id.namespace == *namespace && id.name == *name
            }
            _ => false,
        }
    })
}

fn entry(question: &Question<'_>, placed: &Placed<'_>) -> Entry {
    let id = &placed.id;
    let cells = vec![
        id.gvk.kind.as_str().into(),
        Cell::name(id.name.as_str()),
        placed.owner.to_string().into(),
        id.gvk.api_version().into(),
        placed.object.origin.to_string().into(),
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
