//! Parses the bytes of a file to resources.

use std::collections::VecDeque;
use std::sync::Arc;

use portolan_budget::Budget;
use portolan_yaml::{Dialect, Node};

use crate::error::{During, Error, Result};
use crate::resource::{Origin, Resource};
use crate::value::cost::charge_value;
use crate::value::field::{is_blank, present_text};
use crate::value::remark::Remarks;

/// How deep an object may be nested: far above any real one, and shallow enough for every walk over it.
pub const MAX_DEPTH: usize = 400;

/// Reads the resources of a file; lists of objects give their items.
pub(crate) fn read_resources(
    bytes: &[u8],
    origin: &Origin,
    budget: &Budget,
) -> Result<Vec<Resource>> {
    let documents = parse(bytes, origin.file.as_str())?;
    let objects = valid_objects(documents, origin, budget)?;
    let remarks = Remarks::read(bytes, &objects).map(Arc::new);
    let mut waiting = VecDeque::from(objects);
    let mut resources = Vec::with_capacity(waiting.len());
    while let Some(node) = waiting.pop_front() {
        if let Some(items) = list_items(&node)? {
            // kustomize queues the items behind the file's other documents.
            waiting.extend(valid_objects(items, origin, budget)?);
            continue;
        }
        budget.allocate(size_of::<Resource>())?;
        let origin = Arc::new(Origin {
            at: node.at,
            ..origin.clone()
        });
        let mut resource = Resource::new(node, origin)?;
        resource.remarks.clone_from(&remarks);
        resources.push(resource);
    }
    Ok(resources)
}

/// Parses all documents of a text in kustomize's dialect.
pub(crate) fn parse(bytes: &[u8], file: &str) -> Result<Vec<Node>> {
    portolan_yaml::parse_bytes(bytes, Dialect::Kustomize).map_err(|source| Error::Yaml {
        file: file.to_owned(),
        source,
    })
}

/// Parses one document as `sigs.k8s.io/yaml` does: configuration files and JSON patches.
pub(crate) fn parse_config(bytes: &[u8], file: &str, budget: &Budget) -> Result<Node> {
    let node =
        portolan_yaml::parse_one_bytes(bytes, Dialect::Helm).map_err(|source| Error::Yaml {
            file: file.to_owned(),
            source,
        })?;
    charge_document(&node, file, budget)?;
    Ok(node)
}

/// The items of an object whose kind ends in `List`; `None` for any other.
fn list_items(node: &Node) -> Result<Option<Vec<Node>>> {
    let kind = present_text(node.get("kind"));
    if !kind.ends_with("List") {
        return Ok(None);
    }
    match node.get("items") {
        None => Ok(None),
        Some(items) if items.is_null() => Ok(Some(Vec::new())),
        Some(items) => match items.as_list() {
            Some(list) => Ok(Some(list.iter().cloned().collect())),
            None => Err(Error::refused(format!("expected array in {kind}/items"))),
        },
    }
}

fn valid_objects(nodes: Vec<Node>, origin: &Origin, budget: &Budget) -> Result<Vec<Node>> {
    let mut valid = Vec::with_capacity(nodes.len());
    for node in nodes {
        if is_blank(&node) {
            continue;
        }
        charge_document(&node, origin.file.as_str(), budget)?;
        check_object(&node, origin)?;
        valid.push(node);
    }
    Ok(valid)
}

/// An object has a kind, and a name unless it is a list.
fn check_object(node: &Node, origin: &Origin) -> Result<()> {
    let missing = |what: &str| {
        let (file, line) = (&origin.file, node.at.line);
        Err(Error::refused(format!(
            "missing {what} in object at `{file}` line {line}"
        )))
    };
    if node.as_map().is_none() {
        return missing("resource metadata");
    }
    let kind = present_text(node.get("kind"));
    if kind.is_empty() {
        return missing("kind");
    }
    let name = present_text(node.at_path(&["metadata", "name"]));
    if name.is_empty() && !kind.ends_with("List") {
        return missing("metadata.name");
    }
    Ok(())
}

/// Charges a document that was read: aliases make it larger than its file.
pub(crate) fn charge_document(node: &Node, file: &str, budget: &Budget) -> Result<()> {
    let charged = charge_value(node, budget, file).map(drop);
    charged.during_exceeded(|| format!("reading `{file}`"))
}
