//! Versions in which objects are still stored although their `CustomResourceDefinition` no longer has the version.
//!
//! The API server refuses a definition that drops a version listed in `status.storedVersions`.

use portolan_yaml::Node;

use super::{Checker, Subjected};
use crate::finding::Finding;
use crate::level::Level;
use crate::lifecycle::Stage;

impl Checker {
    /// Adds a finding for every stored version that stands in the way.
    pub(super) fn stored_versions(&self, object: &Subjected<'_>, findings: &mut Vec<Finding>) {
        if object.kind != "CustomResourceDefinition" {
            return;
        }
        let text = |path: &[&str]| {
            object
                .node
                .at_path(path)
                .and_then(Node::as_str)
                .unwrap_or_default()
        };
        let (group, kind) = (text(&["spec", "group"]), text(&["spec", "names", "kind"]));
        let stored = object
            .node
            .at_path(&["status", "storedVersions"])
            .and_then(Node::as_list);
        for version in stored.into_iter().flat_map(|list| list.iter()) {
            let Some(name) = version.as_str() else {
                continue;
            };
            let Some(why) = self.blocks(object, group, kind, name) else {
                continue;
            };
            let message = format!("{kind} objects are stored as `{name}`, {why}");
            let mut finding = object.finding(Level::StoredVersion, version.at, message);
            finding.path = Some(format!("status.storedVersions[{name}]"));
            finding.replacement = storage_version(object.node).map(|version| {
                format!("write every object anew as {group}/{version}, then take `{name}` out of status.storedVersions")
            });
            findings.push(finding.with_id());
        }
    }

    fn blocks(
        &self,
        object: &Subjected<'_>,
        group: &str,
        kind: &str,
        version: &str,
    ) -> Option<String> {
        let mut versions = versions(object.node);
        if !versions.any(|entry| entry.get("name").and_then(Node::as_str) == Some(version)) {
            return Some("which the definition no longer has".to_owned());
        }
        let row = self.table.get(group, version, kind)?;
        let release = self.target.release_for(row)?;
        (row.stage(release) == Stage::Removed)
            .then(|| format!("which {} {release} no longer has", row.component))
    }
}

fn versions(definition: &Node) -> impl Iterator<Item = &Node> {
    let list = definition
        .at_path(&["spec", "versions"])
        .and_then(Node::as_list);
    list.into_iter().flat_map(|list| list.iter())
}

fn storage_version(definition: &Node) -> Option<&str> {
    let mut versions = versions(definition);
    let storage =
        versions.find(|entry| entry.get("storage").and_then(Node::as_bool) == Some(true))?;
    storage.get("name").and_then(Node::as_str)
}
