//! Which nodes watch for a Beacon: those that its target names, of those that its namespace may target.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_agent::wire::{BeaconOrder, BeaconOrders};
use portolan_kinds::{KindObject, find_kind};
use portolan_object::Selector;
use serde_json::Value;

use crate::cache::Cache;
use crate::node_access::{is_in_group, texts};

/// The most beacons of a node; those whose names come first are taken.
const MAX_BEACONS: usize = 200;

/// The beacons, groups and grants that the store has now.
pub(super) struct BeaconView {
    beacons: Vec<BeaconChoice>,
    groups: Vec<Arc<KindObject>>,
    grants: Vec<Arc<KindObject>>,
}

/// A Beacon with its selector, which is read once for all nodes.
struct BeaconChoice {
    object: Arc<KindObject>,
    selector: Option<Selector>,
}

impl BeaconView {
    pub(super) fn new(cache: &Cache) -> Self {
        let all =
            |kind: &str| find_kind(kind).map_or_else(Vec::new, |kind| cache.objects(kind, None));
        let beacons = all("Beacon").into_iter();
        let beacons = beacons.filter(|beacon| {
            let is_suspended = beacon.spec.get("suspend").and_then(Value::as_bool);
            is_suspended != Some(true) && beacon.metadata.deletion_timestamp.is_none()
        });
        let beacons = beacons.map(|object| BeaconChoice {
            selector: target_text(&object, "selector").and_then(|text| text.parse().ok()),
            object,
        });
        Self {
            beacons: beacons.collect(),
            groups: all("NodeGroup"),
            grants: all("NodeGrant"),
        }
    }

    /// What a node has to watch, in a fixed order.
    pub(super) fn orders(&self, node: &KindObject) -> BeaconOrders {
        let groups = self.groups.iter().filter(|group| is_in_group(node, group));
        let groups: BTreeSet<&str> = groups.map(|group| group.name()).collect();
        let grants = self.grants.iter();
        let grants = grants.filter(|grant| texts(grant, "groups").any(|one| groups.contains(one)));
        let namespaces: BTreeSet<&str> = grants
            .flat_map(|grant| texts(grant, "namespaces"))
            .collect();
        let beacons = self.beacons.iter().filter(|beacon| {
            let namespace = beacon.object.namespace().unwrap_or_default();
            namespaces.contains(namespace) && beacon.chooses(node, &groups)
        });
        let beacons = beacons.take(MAX_BEACONS).map(|beacon| BeaconOrder {
            id: format!(
                "{}.{}",
                beacon.object.metadata.uuid(),
                beacon.object.metadata.generation.unwrap_or(1)
            ),
            namespace: beacon.object.namespace().unwrap_or_default().to_owned(),
            name: beacon.object.name().to_owned(),
            spec: beacon.object.spec.to_string().into(),
        });
        BeaconOrders {
            beacons: beacons.collect(),
        }
    }
}

impl BeaconChoice {
    /// Everything that the target says must hold, and it must say something.
    fn chooses(&self, node: &KindObject, groups: &BTreeSet<&str>) -> bool {
        let wanted: Vec<&str> = target_texts(&self.object, "groups").collect();
        let named: Vec<&str> = target_texts(&self.object, "nodes").collect();
        let target = self.object.spec.get("target");
        let is_all = target.and_then(|target| target.get("all")) == Some(&Value::Bool(true));
        let has_selector = target_text(&self.object, "selector").is_some();
        let says_something = is_all || has_selector || !wanted.is_empty() || !named.is_empty();
        let is_selected = || {
            let selector = self.selector.as_ref();
            selector.is_some_and(|selector| selector.matches(|key| node.label(key)))
        };
        says_something
            && (wanted.is_empty() || wanted.iter().any(|one| groups.contains(one)))
            && (named.is_empty() || named.contains(&node.name()))
            && (!has_selector || is_selected())
    }
}

fn target_text<'o>(beacon: &'o KindObject, field: &str) -> Option<&'o str> {
    beacon.spec.get("target")?.get(field)?.as_str()
}

fn target_texts<'o>(beacon: &'o KindObject, field: &str) -> impl Iterator<Item = &'o str> {
    let target = beacon.spec.get("target");
    let list = target.and_then(|target| target.get(field)?.as_array());
    list.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, namespace: Option<&str>, spec: Value) -> Arc<KindObject> {
        let kind = find_kind(kind).expect("a kind");
        let mut object = KindObject::new(kind, name, namespace, spec);
        object.metadata.uuid = Some(format!("uuid of {name}"));
        Arc::new(object)
    }

    fn watched(target: &Value) -> Vec<String> {
        let node = |name: &str, role: &str| {
            let mut node = object("Node", name, None, json!({}));
            let metadata = &mut Arc::make_mut(&mut node).metadata;
            metadata.labels.insert("role".to_owned(), role.to_owned());
            node
        };
        let nodes = [node("a", "web"), node("b", "db"), node("c", "other")];
        let spec = json!({"target": target, "disk": {"path": "/"}});
        let beacon = object("Beacon", "room", Some("shop"), spec);
        let selector = target_text(&beacon, "selector").and_then(|text| text.parse().ok());
        let group = |name: &str, selector: &str| {
            object("NodeGroup", name, None, json!({"selector": selector}))
        };
        let view = BeaconView {
            beacons: vec![BeaconChoice {
                object: beacon,
                selector,
            }],
            groups: vec![group("web", "role=web"), group("shop", "role in (web,db)")],
            grants: vec![object(
                "NodeGrant",
                "shop",
                None,
                json!({"groups": ["shop"], "namespaces": ["shop"]}),
            )],
        };
        let nodes = nodes.iter().filter(|node| {
            let orders = view.orders(node);
            !orders.beacons.is_empty()
        });
        nodes.map(|node| node.name().to_owned()).collect()
    }

    #[test]
    fn a_beacon_reaches_only_nodes_that_its_namespace_may_target() {
        assert_eq!(watched(&json!({"all": true})), ["a", "b"]);
        assert_eq!(watched(&json!({"nodes": ["b", "c"]})), ["b"]);
        assert_eq!(watched(&json!({"groups": ["web"]})), ["a"]);
        assert_eq!(watched(&json!({"selector": "role!=web"})), ["b"]);
    }

    #[test]
    fn everything_that_a_target_says_must_hold_and_nothing_chooses_nobody() {
        let both = json!({"groups": ["web"], "nodes": ["b"]});
        assert!(watched(&both).is_empty());
        assert!(watched(&json!({})).is_empty());
        assert!(watched(&json!({"all": false})).is_empty());
    }
}
