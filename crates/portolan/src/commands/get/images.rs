//! `get images`: every container image that a rendered object names, and which objects do.

use std::collections::BTreeMap;

use portolan_flux::OBJECT;
use portolan_object::{ImageRef, Noun, images};
use portolan_review::inventory::{self, PlacedObject};
use portolan_yaml::{List, Node, Text, Value};

use super::{Question, some_of};
use crate::error::CommandError;
use crate::listing::{Column, Entry, Listing, record};
use crate::table::Cell;

/// A place where an image is named.
struct Use<'a> {
    object: &'a PlacedObject<'a>,
    path: String,
}

/// Images of each cluster with their uses.
type Uses<'a> = BTreeMap<(Text, Text), Vec<Use<'a>>>;

const NOUN: Noun = Noun {
    singular: "image",
    list_command: "portolan get images",
};

pub(super) fn list(question: &Question<'_>) -> Result<Listing, CommandError> {
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
    let objects = inventory::objects(question.rendered);
    let uses = uses(question, &objects)?;
    let is_known = |name: &str| uses.keys().any(|(_, image)| is_named(name, image));
    let known: Vec<String> = uses.keys().map(|(_, image)| repository(image)).collect();
    question.refuse_unknown_names(NOUN, is_known, &known)?;
    let is_wanted = |image: &str| {
        let mut names = question.names.iter();
        question.names.is_empty() || names.any(|name| is_named(name, image))
    };
    for ((cluster, image), uses) in &uses {
        if is_wanted(image) {
            listing.push(entry(question, cluster, image, uses));
        }
    }
    Ok(listing)
}

fn uses<'a>(
    question: &Question<'_>,
    objects: &'a [PlacedObject<'a>],
) -> Result<Uses<'a>, CommandError> {
    let mut found = Uses::new();
    let all = objects.iter().map(|placed| (placed.candidate(), placed));
    for placed in question.chosen(OBJECT, all.collect())? {
        for image in images(placed.object.gvk(), placed.object.node()) {
            let key = (placed.cluster.name.clone(), image.reference);
            found.entry(key).or_default().push(Use {
                object: placed,
                path: image.path,
            });
        }
    }
    Ok(found)
}

/// An image is named in full, without its tag, or by the last part of its repository.
fn is_named(name: &str, image: &str) -> bool {
    let repository = repository(image);
    let last = repository.rsplit('/').next().unwrap_or(&repository);
    [image, &repository, last].contains(&name)
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
