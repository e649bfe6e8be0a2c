//! Which nodes a run works on: what its book names, narrowed by the caller, and only nodes that its namespace may target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portolan_digest::hex;
use portolan_kinds::{KindObject, find_kind};
use portolan_object::Selector;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::error::ApiError;
use crate::node_access::{is_in_group, texts};

/// The most nodes of a run: they are listed in the Run.
pub(super) const MAX_NODES: usize = 5_000;

/// The label of nodes that new runs leave out.
const DRAINED: &str = "portolan.dev/drained";

/// How a caller narrows the nodes of a book.
#[derive(Debug, Clone, Default)]
pub(super) struct Narrowing {
    pub(super) selector: Option<Selector>,
    pub(super) nodes: Vec<String>,
}

/// The nodes and groups that the store has now.
pub(super) struct FleetView {
    nodes: Vec<Arc<KindObject>>,
    groups: BTreeMap<String, Arc<KindObject>>,
    grants: Vec<Arc<KindObject>>,
}

impl FleetView {
    pub(super) fn new(cache: &Cache) -> Self {
        let all =
            |kind: &str| find_kind(kind).map_or_else(Vec::new, |kind| cache.objects(kind, None));
        let groups = all("NodeGroup").into_iter();
        Self {
            nodes: all("Node"),
            groups: groups
                .map(|group| (group.name().to_owned(), group))
                .collect(),
            grants: all("NodeGrant"),
        }
    }

    /// The groups that a node is in.
    pub(super) fn groups_of(&self, node: &KindObject) -> BTreeSet<&str> {
        let groups = self.groups.iter();
        groups
            .filter(|(_, group)| is_in_group(node, group))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// A group by its name.
    pub(super) fn group(&self, name: &str) -> Option<&KindObject> {
        self.groups.get(name).map(AsRef::as_ref)
    }

    /// The nodes that a namespace may target, by their names.
    pub(super) fn granted(&self, namespace: &str) -> Vec<Arc<KindObject>> {
        let grants = self.grants.iter();
        let grants = grants.filter(|grant| texts(grant, "namespaces").any(|one| one == namespace));
        let groups: Vec<&Arc<KindObject>> = grants
            .flat_map(|grant| texts(grant, "groups"))
            .filter_map(|name| self.groups.get(name))
            .collect();
        let nodes = self.nodes.iter();
        let is_granted =
            |node: &&Arc<KindObject>| groups.iter().any(|group| is_in_group(node, group));
        nodes.filter(is_granted).cloned().collect()
    }

    /// The nodes of a run, in the order in which they are taken.
    pub(super) fn targets(
        &self,
        namespace: &str,
        target: &Value,
        narrowing: &Narrowing,
        seed: &str,
    ) -> Result<Vec<Arc<KindObject>>, ApiError> {
        let wanted = Wanted::read(self, target, narrowing)?;
        let mut nodes = self.granted(namespace);
        nodes.retain(|node| wanted.matches(node));
        self.check_named(namespace, &wanted)?;
        match target.get("order").and_then(Value::as_str) {
            Some("name") => nodes.sort_by(|a, b| a.name().cmp(b.name())),
            Some("random") => nodes.sort_by_key(|node| rank(seed, node)),
            _ => nodes.sort_by_key(|node| rank("", node)),
        }
        if let Some(limit) = target.get("limit").and_then(Value::as_u64) {
            nodes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        let may_be_empty = target.get("allowEmpty").and_then(Value::as_bool) == Some(true);
        if nodes.is_empty() && !may_be_empty {
            return Err(self.nothing_matches(namespace));
        }
        if nodes.len() > MAX_NODES {
            let message = format!("{} nodes match; a run has at most {MAX_NODES}", nodes.len());
            return Err(ApiError::bad_request(message));
        }
        Ok(nodes)
    }

    /// A node that is named and may not be targeted is an error, and does not tell whether the node exists.
    fn check_named(&self, namespace: &str, wanted: &Wanted<'_>) -> Result<(), ApiError> {
        let granted = self.granted(namespace);
        for name in &wanted.named {
            if !granted.iter().any(|node| node.name() == name) {
                let message = format!("namespace {namespace} may not target a node {name}");
                let error = ApiError::bad_request(message);
                return Err(error.hint("a NodeGrant gives a namespace the nodes of a NodeGroup"));
            }
        }
        Ok(())
    }

    fn nothing_matches(&self, namespace: &str) -> ApiError {
        let granted = self.granted(namespace).len();
        let error = ApiError::bad_request("no node matches the target of the book");
        if granted == 0 {
            let hint = format!(
                "namespace {namespace} may target no node: make a NodeGroup and a NodeGrant for it"
            );
            return error.hint(hint);
        }
        error.hint(format!("namespace {namespace} may target {granted} nodes; `allowEmpty: true` allows a run on none"))
    }
}

/// What a node must be to take part.
struct Wanted<'v> {
    groups: Vec<Vec<&'v Arc<KindObject>>>,
    selectors: Vec<Selector>,
    /// Lists of names that must contain the node.
    names: Vec<BTreeSet<String>>,
    excluded: BTreeSet<String>,
    /// Names that must exist.
    named: BTreeSet<String>,
}

impl<'v> Wanted<'v> {
    fn read(view: &'v FleetView, target: &Value, narrowing: &Narrowing) -> Result<Self, ApiError> {
        let list = |key: &str| {
            let list = target
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let list = list.filter_map(Value::as_str).map(str::to_owned);
            list.collect::<Vec<String>>()
        };
        let group = |name: &str| {
            view.groups.get(name).ok_or_else(|| {
                let error = ApiError::bad_request(format!("there is no NodeGroup {name}"));
                let known: Vec<&str> = view.groups.keys().map(String::as_str).collect();
                error.hint(format!("there are {}", known.join(", ")))
            })
        };
        let mut groups = Vec::new();
        if let Some(name) = target.get("group").and_then(Value::as_str) {
            groups.push(vec![group(name)?]);
        }
        if !list("groups").is_empty() {
            let any: Result<Vec<_>, ApiError> =
                list("groups").iter().map(|name| group(name)).collect();
            groups.push(any?);
        }
        let mut selectors: Vec<Selector> = narrowing.selector.iter().cloned().collect();
        if let Some(text) = target.get("selector").and_then(Value::as_str) {
            let selector = text.parse();
            selectors.push(
                selector.map_err(|error| ApiError::bad_request(format!("`{text}`: {error}")))?,
            );
        }
        let is_any = target.get("all").and_then(Value::as_bool) == Some(true);
        let names: Vec<BTreeSet<String>> = [list("nodes"), narrowing.nodes.clone()]
            .into_iter()
            .filter(|names| !names.is_empty())
            .map(|names| names.into_iter().collect())
            .collect();
        if groups.is_empty() && selectors.is_empty() && names.is_empty() && !is_any {
            let error =
                ApiError::bad_request("the book has no target, and the caller names no nodes");
            return Err(
                error.hint("set `target` in the book, or give a selector or names of nodes")
            );
        }
        Ok(Self {
            named: names.iter().flatten().cloned().collect(),
            groups,
            selectors,
            names,
            excluded: list("exclude").into_iter().collect(),
        })
    }

    fn matches(&self, node: &KindObject) -> bool {
        let in_groups =
            |any: &Vec<&Arc<KindObject>>| any.iter().any(|group| is_in_group(node, group));
        self.groups.iter().all(in_groups)
            && self
                .selectors
                .iter()
                .all(|selector| selector.matches(|key| node.label(key)))
            && self.names.iter().all(|names| names.contains(node.name()))
            && !self.excluded.contains(node.name())
            && node.label(DRAINED).is_none()
    }
}

/// An order that has nothing to do with names, and is the same for the same seed.
fn rank(seed: &str, node: &KindObject) -> String {
    let mut hasher = Sha256::new();
    hasher.update(seed);
    hasher.update([0]);
    hasher.update(node.metadata.uuid());
    hex(&hasher.finalize()[..8])
}
