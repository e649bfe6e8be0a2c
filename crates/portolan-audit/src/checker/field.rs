//! Fields, values, annotations and node labels inside the object.

use portolan_object::{Gvk, pod_templates};
use portolan_yaml::{Node, Position};

use super::{Checker, Subjected};
use crate::deprecation::{Deprecation, Part};
use crate::finding::Finding;
use crate::level::Level;
use crate::table;

/// A part of an object that was found, with its path.
struct Found {
    path: String,
    at: Position,
}

impl Checker {
    /// Adds a finding for every deprecated part.
    pub(super) fn fields(&self, object: &Subjected<'_>, findings: &mut Vec<Finding>) {
        let gvk = Gvk::new(object.group, object.version, object.kind);
        let templates = pod_templates(&gvk, object.node);
        let concerns = |fact: &&Deprecation| fact.concerns(self.target.release());
        for fact in table::deprecations().iter().filter(concerns) {
            let mut found = Vec::new();
            if fact.place == "pod" || fact.part == Part::NodeLabel {
                for template in &templates {
                    seek(fact, template.node, &template.path, &mut found);
                }
            }
            if fact.is_in(object.kind) {
                seek(fact, object.node, "", &mut found);
            }
            if fact.part == Part::NodeLabel {
                volumes(fact, object, &mut found);
            }
            findings.extend(found.into_iter().map(|part| self.field(object, fact, part)));
        }
    }

    fn field(&self, object: &Subjected<'_>, fact: &Deprecation, part: Found) -> Finding {
        let what = match fact.part {
            Part::Field => "field",
            Part::Value(_) => "value",
            Part::Annotation => "annotation",
            Part::NodeLabel => "node label",
        };
        let since = |release: Option<crate::Release>| {
            release.map_or_else(String::new, |release| {
                format!(" since Kubernetes {release}")
            })
        };
        let mut message = match fact.nonfunctional {
            Some(end) if end <= self.target.release() => {
                format!("{what} `{}` has no effect{}", part.path, since(Some(end)))
            }
            _ => format!(
                "{what} `{}` is deprecated{}",
                part.path,
                since(fact.deprecated)
            ),
        };
        if !fact.note.is_empty() {
            message.push_str("; ");
            message.push_str(fact.note);
        }
        let mut finding = object.finding(Level::Field, part.at, message);
        finding.path = Some(part.path);
        finding.deprecated_in = fact.deprecated;
        finding.removed_in = fact.nonfunctional;
        finding.replacement = (!fact.replacement.is_empty()).then(|| fact.replacement.to_owned());
        finding.with_id()
    }
}

fn seek(fact: &Deprecation, node: &Node, prefix: &str, found: &mut Vec<Found>) {
    match fact.part {
        Part::Field if fact.path == "spec.serviceAccount" => service_account(node, prefix, found),
        Part::Field => walk(node, fact.path, prefix, found, &|_| true),
        Part::Value(value) => {
            walk(node, fact.path, prefix, found, &|node| {
                node.as_str() == Some(value)
            });
        }
        Part::Annotation => annotations(fact.path, node, prefix, found),
        Part::NodeLabel => node_labels(fact.path, node, prefix, found),
    }
}

/// The API server copies `serviceAccountName` here itself, so only the field alone is somebody's doing.
fn service_account(node: &Node, prefix: &str, found: &mut Vec<Found>) {
    let alone = node
        .get("spec")
        .is_some_and(|spec| spec.get("serviceAccountName").is_none());
    if alone {
        walk(node, "spec.serviceAccount", prefix, found, &|_| true);
    }
}

/// Follows a path with `[]` for every item and `*` for every key. Paths are ours and short, so the recursion is.
fn walk(
    node: &Node,
    path: &str,
    seen: &str,
    found: &mut Vec<Found>,
    wanted: &dyn Fn(&Node) -> bool,
) {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, each) = step
        .strip_suffix("[]")
        .map_or((step, false), |key| (key, true));
    let Some(map) = node.as_map() else { return };
    for entry in map
        .iter()
        .filter(|entry| key == "*" || entry.key.as_str() == key)
    {
        let mut here = join(seen, entry.key.as_str());
        if each {
            here.push_str("[]");
            for item in entry
                .value
                .as_list()
                .into_iter()
                .flat_map(|list| list.iter())
            {
                walk(item, rest, &here, found, wanted);
            }
        } else if !rest.is_empty() {
            walk(&entry.value, rest, &here, found, wanted);
        } else if !is_empty(&entry.value) && wanted(&entry.value) {
            found.push(Found {
                path: here,
                at: entry.key.at,
            });
        }
    }
}

fn annotations(pattern: &str, node: &Node, prefix: &str, found: &mut Vec<Found>) {
    let map = node
        .at_path(&["metadata", "annotations"])
        .and_then(Node::as_map);
    for entry in map.into_iter().flat_map(|map| map.iter()) {
        let key = entry.key.as_str();
        if matches_key(pattern, key) {
            let path = join(prefix, &format!("metadata.annotations[{key}]"));
            found.push(Found {
                path,
                at: entry.key.at,
            });
        }
    }
}

/// The places where a pod chooses nodes by label.
fn node_labels(label: &str, template: &Node, prefix: &str, found: &mut Vec<Found>) {
    let Some(spec) = template.get("spec") else {
        return;
    };
    let base = join(prefix, "spec");
    let selector = spec.get("nodeSelector").and_then(Node::as_map);
    for entry in selector.into_iter().flat_map(|map| map.iter()) {
        if entry.key.as_str() == label {
            found.push(Found {
                path: join(&base, &format!("nodeSelector[{label}]")),
                at: entry.key.at,
            });
        }
    }
    let is_label = |node: &Node| node.as_str() == Some(label);
    let terms = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[].matchExpressions[].key";
    let preferred = "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[].preference.matchExpressions[].key";
    for path in [terms, preferred, "topologySpreadConstraints[].topologyKey"] {
        walk(spec, path, &base, found, &is_label);
    }
}

/// The places where volumes choose nodes by label.
fn volumes(fact: &Deprecation, object: &Subjected<'_>, found: &mut Vec<Found>) {
    let is_label = |node: &Node| node.as_str() == Some(fact.path);
    let path = match object.kind {
        "StorageClass" => "allowedTopologies[].matchLabelExpressions[].key",
        "PersistentVolume" => {
            "spec.nodeAffinity.required.nodeSelectorTerms[].matchExpressions[].key"
        }
        _ => return,
    };
    walk(object.node, path, "", found, &is_label);
}

fn matches_key(pattern: &str, key: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == key, |start| key.starts_with(start))
}

fn join(path: &str, step: &str) -> String {
    if path.is_empty() {
        step.to_owned()
    } else {
        format!("{path}.{step}")
    }
}

fn is_empty(node: &Node) -> bool {
    node.is_null() || node.as_list().is_some_and(portolan_yaml::List::is_empty)
}
