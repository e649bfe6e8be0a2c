//! `get images`: every container image that a rendered object names, and which objects do.

use std::collections::BTreeMap;

use portolan_flux::api::NamespacedName;
use portolan_object::{ImageRef, images};
use portolan_yaml::{List, Node, Text, Value};

use super::{Question, some_of};
use crate::error::CommandError;
use crate::inventory::{self, Placed};
use crate::listing::{Column, Entry, Listing, record};
use crate::suggestion::not_found;
use crate::table::Cell;

/// A place where an image is named.
struct Use<'a> {
    object: Placed<'a>,
    path: String,
}

/// Images of each cluster with their uses.
type Uses<'a> = BTreeMap<(Text, Text), Vec<Use<'a>>>;

pub(super) fn list(question: &Question<'_>) -> Listing {
    let mut listing = Listing::new(
        "ImageList",
        question.columns(
            false,
            &[
                Column::Always("IMAGE"),
                Column::Always("USED BY"),
                Column::Wide("OWNERS"),
            ],
        ),
    );
    for ((cluster, image), uses) in uses(question) {
        if question.names.is_empty() || is_named(question.names, &image) {
            listing.push(entry(question, &cluster, &image, &uses));
        }
    }
    listing
}

pub(super) fn unknown(question: &Question<'_>) -> CommandError {
    let known: Vec<_> = uses(question)
        .into_keys()
        .map(|(_, image)| NamespacedName::new("", repository(&image)))
        .collect();
    not_found("image", question.names, &known, "portolan get images")
}

fn uses<'a>(question: &Question<'a>) -> Uses<'a> {
    let mut found = Uses::new();
    for placed in inventory::objects(question.rendered) {
        if !question.selection.has_namespace(&placed.id.namespace)
            || !question.selection.has_labels(Some(placed.object))
        {
            continue;
        }
        for image in images(placed.object.gvk(), placed.object.node()) {
            let key = (placed.cluster.name.clone(), image.reference);
            found.entry(key).or_default().push(Use {
                object: placed.clone(),
                path: image.path,
            });
        }
    }
    found
}

/// An image is named in full, without its tag, or by the last part of its repository.
fn is_named(names: &[String], image: &str) -> bool {
    let repository = repository(image);
    let last = repository.rsplit('/').next().unwrap_or(&repository);
    names
        .iter()
        .any(|name| [image, &repository, last].contains(&name.as_str()))
}

/// The reference without tag and digest, as written.
fn repository(image: &str) -> String {
    image
        .parse::<ImageRef>()
        .map_or_else(|_| image.to_owned(), |image| image.familiar_name())
}

fn entry(question: &Question<'_>, cluster: &str, image: &str, uses: &[Use<'_>]) -> Entry {
    let mut users: Vec<String> = uses
        .iter()
        .map(|one| one.object.id.short().to_string())
        .collect();
    users.sort();
    users.dedup();
    let mut owners: Vec<String> = uses
        .iter()
        .map(|one| one.object.owner.to_string())
        .collect();
    owners.sort();
    owners.dedup();
    let records = uses.iter().map(used_by).collect();
    let record = record([
        ("cluster", Node::string(cluster)),
        ("image", Node::string(image)),
        ("usedBy", Node::new(Value::List(List::from_items(records)))),
    ]);
    let cells = vec![
        Cell::name(image),
        some_of(&users).into(),
        owners.join(", ").into(),
    ];
    Entry {
        cells: question.cells(cluster, None, cells),
        record,
        name: image.to_owned(),
    }
}

fn used_by(one: &Use<'_>) -> Node {
    let id = &one.object.id;
    record([
        ("apiVersion", Node::string(id.gvk.api_version())),
        ("kind", Node::string(id.gvk.kind.clone())),
        ("namespace", Node::string(id.namespace.clone())),
        ("name", Node::string(id.name.clone())),
        ("path", Node::string(one.path.as_str())),
        ("owner", Node::string(one.object.owner.to_string())),
    ])
}
