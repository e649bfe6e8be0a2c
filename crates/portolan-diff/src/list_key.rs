//! The fields that identify the items of a list, so an inserted item is not shown as a change of all items after it.
//!
//! Kubernetes defines merge keys for some lists, and custom kinds follow the same conventions. So a list is compared
//! by key if all items of both sides have the fields that usually identify items in lists of this name, each with a
//! different value.

use std::collections::HashSet;

use portolan_yaml::{List, Node, Text};

/// Fields that identify an item; a dotted one lies deeper.
type Fields = &'static [&'static str];

/// Lists by name with the fields to try, best first.
const KEYS: &[(&str, &[Fields])] = &[
    ("conditions", &[&["type"]]),
    ("endpoints", &[&["addresses"], &["port", "path"], &["port"]]),
    ("hostAliases", &[&["ip"]]),
    ("items", &[&["key"], &["path"]]),
    ("ownerReferences", &[&["uid"]]),
    ("paths", &[&["path", "pathType"], &["path"]]),
    (
        "ports",
        &[
            &["containerPort", "protocol"],
            &["port", "protocol"],
            &["name"],
        ],
    ),
    ("readinessGates", &[&["conditionType"]]),
    ("rules", &[&["host"]]),
    ("subjects", &[&["name", "kind", "namespace"]]),
    ("taints", &[&["key", "effect"]]),
    ("tls", &[&["secretName"]]),
    (
        "topologySpreadConstraints",
        &[&["topologyKey", "whenUnsatisfiable"]],
    ),
    ("volumeClaimTemplates", &[&["metadata.name"]]),
    ("volumeDevices", &[&["devicePath"]]),
    ("volumeMounts", &[&["mountPath"]]),
];

/// Tried for every list, after those of its name.
const COMMON: &[Fields] = &[&["name"], &["metadata.name"]];

/// The keys of the items of two lists that are compared.
pub(crate) struct Keyed {
    pub(crate) old: Vec<Text>,
    pub(crate) new: Vec<Text>,
}

/// The keys by which two lists can be compared, if there are any.
pub(crate) fn keyed(name: Option<&str>, old: &List, new: &List) -> Option<Keyed> {
    let row = KEYS.iter().find(|(list, _)| Some(*list) == name);
    let named = row.map_or(&[][..], |(_, candidates)| candidates);
    let mut candidates = named.iter().chain(COMMON);
    candidates.find_map(|fields| {
        Some(Keyed {
            old: keys(fields, old)?,
            new: keys(fields, new)?,
        })
    })
}

/// One key for each item, or nothing when an item has none or two have the same.
fn keys(fields: Fields, list: &List) -> Option<Vec<Text>> {
    let keys: Vec<Text> = list
        .iter()
        .map(|item| key(fields, item))
        .collect::<Option<_>>()?;
    let distinct: HashSet<&Text> = keys.iter().collect();
    (distinct.len() == keys.len()).then_some(keys)
}

/// The first field must be there, the others may have defaults.
fn key(fields: Fields, item: &Node) -> Option<Text> {
    let value = |field: &str| {
        let path: Vec<&str> = field.split('.').collect();
        let scalar = item.at_path(&path)?.as_scalar()?;
        (!scalar.text.is_empty()).then(|| scalar.text.clone())
    };
    let (first, rest) = fields.split_first()?;
    let first = value(first)?;
    let rest: Vec<Text> = rest.iter().filter_map(|field| value(field)).collect();
    if rest.is_empty() {
        return Some(first);
    }
    let parts: Vec<&str> = std::iter::once(&first)
        .chain(&rest)
        .map(Text::as_str)
        .collect();
    Some(Text::from(parts.join("/")))
}
