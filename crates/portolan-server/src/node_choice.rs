//! Which nodes a Beacon or a Share means: those that it names, of those that its namespace may target.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_kinds::{KindObject, find_kind};
use portolan_object::Selector;
use serde_json::Value;

use crate::cache::Cache;
use crate::node_access::{is_in_group, texts};

/// The groups and grants that the store has now.
pub(crate) struct Grants {
    groups: Vec<Arc<KindObject>>,
    grants: Vec<Arc<KindObject>>,
}

/// What a node belongs to.
pub(crate) struct NodePlace<'g> {
    groups: BTreeSet<&'g str>,
    /// The namespaces that may target it.
    namespaces: BTreeSet<&'g str>,
}

/// Nodes that somebody chose: `groups`, `selector`, `nodes` or `all`. Everything that is given must hold, and something must be.
pub(crate) struct NodeChoice {
    groups: Vec<String>,
    nodes: Vec<String>,
    /// An error for one that cannot be read: it chooses nobody.
    selector: Option<Result<Selector, UnreadSelector>>,
    is_all: bool,
}

/// A selector that cannot be read.
struct UnreadSelector;

impl Grants {
    pub(crate) fn new(cache: &Cache) -> Self {
        let all =
            |kind: &str| find_kind(kind).map_or_else(Vec::new, |kind| cache.objects(kind, None));
        Self::of(all("NodeGroup"), all("NodeGrant"))
    }

    pub(crate) fn of(groups: Vec<Arc<KindObject>>, grants: Vec<Arc<KindObject>>) -> Self {
        Self { groups, grants }
    }

    pub(crate) fn place_of(&self, node: &KindObject) -> NodePlace<'_> {
        let groups = self.groups.iter().filter(|group| is_in_group(node, group));
        let groups: BTreeSet<&str> = groups.map(|group| group.name()).collect();
        let grants = self.grants.iter();
        let grants = grants.filter(|grant| texts(grant, "groups").any(|one| groups.contains(one)));
        let namespaces = grants
            .flat_map(|grant| texts(grant, "namespaces"))
            .collect();
        NodePlace { groups, namespaces }
    }
}

impl NodePlace<'_> {
    /// Whether a namespace may target the node.
    pub(crate) fn is_granted(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }
}

impl NodeChoice {
    pub(crate) fn read(written: &Value) -> Self {
        let list = |field: &str| {
            let list = written.get(field).and_then(Value::as_array);
            let list = list.into_iter().flatten().filter_map(Value::as_str);
            list.map(str::to_owned).collect()
        };
        let selector = written.get("selector").and_then(Value::as_str);
        Self {
            groups: list("groups"),
            nodes: list("nodes"),
            selector: selector.map(|text| text.parse().map_err(|_| UnreadSelector)),
            is_all: written.get("all") == Some(&Value::Bool(true)),
        }
    }

    /// Whether the node is chosen.
    pub(crate) fn has(&self, node: &KindObject, place: &NodePlace<'_>) -> bool {
        let (has_groups, has_nodes) = (!self.groups.is_empty(), !self.nodes.is_empty());
        let is_selected = self.selector.as_ref().is_none_or(|selector| {
            let selector = selector.as_ref();
            selector.is_ok_and(|selector| selector.matches(|key| node.label(key)))
        });
        (self.is_all || has_groups || has_nodes || self.selector.is_some())
            && is_selected
            && (!has_groups
                || self
                    .groups
                    .iter()
                    .any(|one| place.groups.contains(one.as_str())))
            && (!has_nodes || self.nodes.iter().any(|one| one == node.name()))
    }
}
