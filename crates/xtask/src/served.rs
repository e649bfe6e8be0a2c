//! The table of kinds that Kubernetes serves, read from the `swagger.json` documents in its Go modules.
//!
//! A kind is served when its collection can be listed, or created (reviews cannot be listed). It is namespaced when
//! the collection is below `namespaces/{namespace}/`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::go_module;

/// The newest module version of each minor release, oldest first; other tables read the same documents.
pub(crate) const RELEASES: &[(u32, &str)] = &[
    (29, "v1.29.6"),
    (30, "v1.30.14"),
    (31, "v1.31.14"),
    (32, "v1.32.13"),
    (33, "v1.33.13"),
    (34, "v1.34.4"),
    (35, "v1.35.4"),
    (36, "v1.36.3"),
];

/// A kind as one row of the table names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Served {
    group: String,
    version: String,
    kind: String,
    resource: String,
    namespaced: bool,
}

/// Makes the table's source text.
pub(crate) fn generate() -> Result<String> {
    let mut minors: BTreeMap<Served, Vec<u32>> = BTreeMap::new();
    for (minor, version) in RELEASES {
        let path = "api/openapi-spec/swagger.json";
        let document = go_module::json("k8s.io/kubernetes", version, path)?;
        for kind in kinds(&document).with_context(|| format!("unexpected document of {version}"))? {
            minors.entry(kind).or_default().push(*minor);
        }
    }
    Ok(print(&minors))
}

fn kinds(document: &Value) -> Result<Vec<Served>> {
    let paths = document["paths"].as_object().context("no paths")?;
    let mut kinds: Vec<Served> = paths
        .iter()
        .filter_map(|(path, item)| kind(path, item))
        .collect();
    kinds.sort();
    // A namespaced kind also has a collection over all namespaces, which looks cluster-scoped; the namespaced one
    // sorts after it and is the one to keep.
    kinds.reverse();
    kinds.dedup_by(|cluster, namespaced| {
        (
            &cluster.group,
            &cluster.version,
            &cluster.kind,
            &cluster.resource,
        ) == (
            &namespaced.group,
            &namespaced.version,
            &namespaced.kind,
            &namespaced.resource,
        )
    });
    Ok(kinds)
}

/// The kind of a collection's path: `/api/VERSION/…` or `/apis/GROUP/VERSION/…`.
fn kind(path: &str, item: &Value) -> Option<Served> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (["api", _, rest @ ..] | ["apis", _, _, rest @ ..]) = segments.as_slice() else {
        return None;
    };
    let (resource, namespaced) = match rest {
        [resource] => (resource, false),
        ["namespaces", "{namespace}", resource] => (resource, true),
        _ => return None,
    };
    let operation = match &item["get"] {
        get if get["x-kubernetes-action"] == "list" => get,
        _ => item.get("post")?,
    };
    let gvk = operation.get("x-kubernetes-group-version-kind")?;
    let text = |key: &str| gvk[key].as_str().map(str::to_owned);
    Some(Served {
        group: text("group")?,
        version: text("version")?,
        kind: text("kind")?,
        resource: (*resource).to_owned(),
        namespaced,
    })
}

fn print(minors: &BTreeMap<Served, Vec<u32>>) -> String {
    let releases: Vec<&str> = RELEASES.iter().map(|(_, version)| *version).collect();
    let mut text = format!(
        "//! Every kind that Kubernetes served, with the minor releases; made by `cargo run -p xtask -- gen served`.\n\
         //!\n\
         //! Read from the `swagger.json` documents of {} … {}.\n\n\
         use super::{{Row, Scope}};\n\n\
         /// The oldest and the newest minor release the rows know.\n\
         pub(crate) const RELEASES: (u32, u32) = ({}, {});\n\n\
         /// Sorted by group, version and kind.\n\
         #[rustfmt::skip]\n\
         pub(super) const ROWS: &[Row] = &[\n",
        releases.first().unwrap_or(&""),
        releases.last().unwrap_or(&""),
        RELEASES.first().map_or(0, |release| release.0),
        RELEASES.last().map_or(0, |release| release.0),
    );
    for (kind, minors) in minors {
        for (since, until) in runs(minors) {
            let scope = if kind.namespaced {
                "Namespaced"
            } else {
                "Cluster"
            };
            let Served {
                group,
                version,
                kind,
                resource,
                ..
            } = kind;
            let _ = writeln!(
                text,
                "    Row {{ group: {group:?}, version: {version:?}, kind: {kind:?}, resource: {resource:?}, \
                 scope: Scope::{scope}, since: {since}, until: {until} }},"
            );
        }
    }
    text.push_str("];\n");
    text
}

/// The stretches of consecutive releases.
pub(crate) fn runs(minors: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &minor in minors {
        match runs.last_mut() {
            Some((_, until)) if *until + 1 == minor => *until = minor,
            _ => runs.push((minor, minor)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_in_the_releases_starts_a_new_row() {
        assert_eq!(runs(&[29, 30, 33, 34]), [(29, 30), (33, 34)]);
    }
}
