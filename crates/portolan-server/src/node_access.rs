//! What an agent may do: read what concerns its own node, and report what happens on it.
//!
//! Roles and bindings do not count for nodes. Who the node is comes from its certificate alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use portolan_kinds::{KindObject, find_kind};
use portolan_object::Selector;
use portolan_store::Revision;
use serde_json::Value;

use crate::access::Action;
use crate::cache::Cache;
use crate::error::ApiError;
use crate::peer::node_key;

/// The namespace that every node may report events in.
const SYSTEM: &str = "system";

/// Kinds that a node may read, as far as they concern it.
const READABLE: [&str; 4] = ["ClusterVariable", "Node", "Secret", "Variable"];

/// A node by its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeIdentity {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl NodeIdentity {
    /// Whether a node may do something, as far as the path says.
    pub(crate) fn allows(&self, action: &Action<'_>) -> bool {
        let is_own = action.name == Some(self.name.as_str());
        match (action.verb, action.kind) {
            ("get", "Node") => is_own,
            ("get" | "list" | "watch", kind) => READABLE.contains(&kind),
            ("read-secret", "Secret") => action.name.is_some(),
            ("create", "Event") => true,
            _ => false,
        }
    }
}

/// Which objects concern a node.
#[derive(Clone)]
pub(crate) struct NodeScope(Arc<Scope>);

struct Scope {
    node: Arc<NodeIdentity>,
    cache: Cache,
    known: Mutex<Option<(Revision, Arc<Membership>)>>,
}

/// What a node belongs to.
#[derive(Default)]
struct Membership {
    groups: BTreeSet<String>,
    /// The namespaces that may target it.
    namespaces: BTreeSet<String>,
    cluster_variables: BTreeSet<String>,
}

impl NodeScope {
    pub(crate) fn new(node: Arc<NodeIdentity>, cache: Cache) -> Self {
        Self(Arc::new(Scope {
            node,
            cache,
            known: Mutex::new(None),
        }))
    }

    /// Whether the node may read an object.
    pub(crate) fn sees(&self, object: &KindObject) -> bool {
        let node = &self.0.node;
        let member = self.membership();
        let in_namespace = object
            .namespace()
            .is_some_and(|namespace| member.namespaces.contains(namespace));
        match object.kind.name {
            "Node" => object.metadata.uuid.as_deref() == Some(node.uid.as_str()),
            "Variable" => in_namespace && member.is_for(&node.name, object).unwrap_or(true),
            "Secret" => in_namespace && member.is_for(&node.name, object).unwrap_or(false),
            "ClusterVariable" => member.cluster_variables.contains(object.name()),
            _ => false,
        }
    }

    /// Whether the node may report events in a namespace.
    pub(crate) fn may_report_in(&self, namespace: &str) -> bool {
        namespace == SYSTEM || self.membership().namespaces.contains(namespace)
    }

    fn membership(&self) -> Arc<Membership> {
        let revision = self.0.cache.revision();
        let mut known = self.0.known.lock();
        if let Some((at, member)) = known.as_ref()
            && *at == revision
        {
            return Arc::clone(member);
        }
        let member = Arc::new(self.compute());
        *known = Some((revision, Arc::clone(&member)));
        member
    }

    fn compute(&self) -> Membership {
        let (node, cache) = (&self.0.node, &self.0.cache);
        let own = node_key(&node.name).ok().and_then(|key| cache.object(&key));
        // Labels of a node that has the same name by now are somebody else's.
        let Some(own) = own.filter(|own| own.metadata.uuid.as_deref() == Some(node.uid.as_str()))
        else {
            return Membership::default();
        };
        let mut member = Membership::default();
        for group in objects(cache, "NodeGroup") {
            if is_in_group(&own, &group) {
                member.groups.insert(group.name().to_owned());
            }
        }
        for grant in objects(cache, "NodeGrant") {
            if texts(&grant, "groups").any(|group| member.groups.contains(group)) {
                let granted = texts(&grant, "namespaces").map(str::to_owned);
                member.namespaces.extend(granted);
            }
        }
        for binding in objects(cache, "ClusterVariablesBinding") {
            let mut groups = texts(&binding, "groups").peekable();
            let mut namespaces = texts(&binding, "namespaces").peekable();
            let in_group =
                groups.peek().is_none() || groups.any(|group| member.groups.contains(group));
            let in_namespace = namespaces.any(|one| member.namespaces.contains(one));
            if in_group && in_namespace {
                let variables = texts(&binding, "variables").map(str::to_owned);
                member.cluster_variables.extend(variables);
            }
        }
        member
    }
}

impl Membership {
    /// Whether the `for` of an object names the node; `None` without one.
    fn is_for(&self, node: &str, object: &KindObject) -> Option<bool> {
        let target = object.spec.get("for")?;
        let is_node = target.get("node").and_then(Value::as_str) == Some(node);
        let groups = target.get("groups").and_then(Value::as_array);
        let mut groups = groups.into_iter().flatten().filter_map(Value::as_str);
        Some(is_node || groups.any(|group| self.groups.contains(group)))
    }
}

/// Puts the reporting node into an event; one that names another node is refused.
pub(crate) fn sign_event(
    node: &NodeIdentity,
    scope: &NodeScope,
    event: &mut KindObject,
) -> Result<(), ApiError> {
    let namespace = event.namespace().unwrap_or_default();
    if !scope.may_report_in(namespace) {
        return Err(forbidden(node, "report events in this namespace"));
    }
    let named = event
        .spec
        .get("source")
        .and_then(|source| source.get("node"));
    if named.is_some_and(|named| named.as_str() != Some(node.name.as_str())) {
        return Err(forbidden(node, "report events of another node"));
    }
    let source = event.spec.get("source").cloned().unwrap_or_default();
    if source["kind"] == "Node" && source["name"] != node.name.as_str() {
        return Err(forbidden(node, "report events about another node"));
    }
    let kind = event.spec["type"].as_str().unwrap_or_default();
    if is_made_by_servers(kind) || event.spec.get("causes").is_some() {
        return Err(forbidden(node, "report what servers tell by themselves"));
    }
    event.spec["source"]["node"] = node.name.as_str().into();
    Ok(())
}

/// Whether events of a type come from servers alone: triggers believe what they say of runs, nodes and beacons.
pub(crate) fn is_made_by_servers(kind: &str) -> bool {
    const FAMILIES: [&str; 9] = [
        "beacon",
        "cron",
        "events",
        "fleet",
        "node",
        "reconcile",
        "run",
        "share",
        "trigger",
    ];
    let family = kind.split('.').next().unwrap_or_default();
    FAMILIES.contains(&family)
}

/// The refusal of what does not concern a node; it does not tell whether the object exists.
pub(crate) fn forbidden(node: &NodeIdentity, what: &str) -> ApiError {
    ApiError::new(
        http::StatusCode::FORBIDDEN,
        crate::error::RefusalReason::Forbidden,
        format!("node {} may not {what}", node.name),
    )
    .hint("an agent may read what is bound to its node, and report about it")
}

pub(crate) fn is_in_group(node: &KindObject, group: &KindObject) -> bool {
    let selector = group.spec.get("selector").and_then(Value::as_str);
    let selector = selector.and_then(|text| text.parse::<Selector>().ok());
    selector.is_some_and(|selector| selector.matches(|key| node.label(key)))
        || texts(group, "nodes").any(|name| name == node.name())
}

fn objects(cache: &Cache, kind: &str) -> Vec<Arc<KindObject>> {
    find_kind(kind).map_or_else(Vec::new, |kind| cache.objects(kind, None))
}

pub(crate) fn texts<'o>(object: &'o KindObject, field: &str) -> impl Iterator<Item = &'o str> {
    let list = object.spec.get(field).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

impl std::fmt::Debug for NodeScope {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "NodeScope({})", self.0.node.name)
    }
}
