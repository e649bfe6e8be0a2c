//! What each node has to watch.

use std::sync::Arc;

use portolan_agent::wire::{BeaconOrder, BeaconOrders};
use portolan_kinds::{KindObject, find_kind};
use serde_json::Value;

use crate::cache::Cache;
use crate::node_choice::{Grants, NodeChoice};
use crate::runs::{BookName, BookUse, StandingRound, Unready};

/// The most beacons of a node; those whose names come first are taken.
const MAX_BEACONS: usize = 200;

/// The beacons that the store has now.
pub(super) struct BeaconView {
    /// With the nodes that watch, which are read once for all nodes.
    beacons: Vec<(Arc<KindObject>, NodeChoice)>,
    grants: Grants,
}

impl BeaconView {
    pub(super) fn new(cache: &Cache) -> Self {
        let beacons = find_kind("Beacon").map_or_else(Vec::new, |kind| cache.objects(kind, None));
        Self::of(beacons, Grants::new(cache))
    }

    fn of(beacons: Vec<Arc<KindObject>>, grants: Grants) -> Self {
        let beacons = beacons.into_iter().filter(|beacon| {
            let is_suspended = beacon.spec.get("suspend").and_then(Value::as_bool);
            is_suspended != Some(true) && beacon.metadata.deletion_timestamp.is_none()
        });
        let beacons = beacons.map(|beacon| {
            let target = beacon.spec.get("target").unwrap_or(&Value::Null);
            let choice = NodeChoice::read(target);
            (beacon, choice)
        });
        Self {
            beacons: beacons.collect(),
            grants,
        }
    }

    /// The books whose drift is watched.
    pub(super) fn books(&self) -> impl Iterator<Item = BookName> {
        let beacons = self.beacons.iter();
        beacons.filter_map(|(beacon, _)| book_of(beacon).map(|wanted| wanted.name))
    }

    /// What a node has to watch, in a fixed order; `None` while a book for it is being read.
    pub(super) fn orders(
        &self,
        node: &KindObject,
        round: &mut StandingRound<'_>,
    ) -> Option<BeaconOrders> {
        let orders = self.of_node(node).into_iter().map(|beacon| {
            let mut order = order_of(beacon);
            if let Some(wanted) = book_of(beacon) {
                match round.order(&wanted, node) {
                    Ok(book) => order.book = Some(book),
                    Err(Unready::Reading) => return None,
                    Err(Unready::NotNow(why)) => {
                        order.unusable = why;
                        order.keeps_book = true;
                    }
                    Err(Unready::Refused(why) | Unready::Elsewhere(why)) => order.unusable = why,
                }
            }
            Some(order)
        });
        let beacons = orders.collect::<Option<Vec<BeaconOrder>>>()?;
        Some(BeaconOrders { beacons })
    }

    fn of_node(&self, node: &KindObject) -> Vec<&KindObject> {
        let place = self.grants.place_of(node);
        let beacons = self.beacons.iter().filter(|(beacon, choice)| {
            let namespace = beacon.namespace().unwrap_or_default();
            place.is_granted(namespace) && choice.has(node, &place)
        });
        let beacons = beacons.take(MAX_BEACONS);
        beacons.map(|(beacon, _)| beacon.as_ref()).collect()
    }
}

fn order_of(beacon: &KindObject) -> BeaconOrder {
    BeaconOrder {
        id: format!(
            "{}.{}",
            beacon.metadata.uuid(),
            beacon.metadata.generation.unwrap_or(1)
        ),
        namespace: beacon.namespace().unwrap_or_default().to_owned(),
        name: beacon.name().to_owned(),
        spec: beacon.spec.to_string().into(),
        ..BeaconOrder::default()
    }
}

/// The book whose drift a beacon watches, as a check of it by the namespace of the beacon.
fn book_of(beacon: &KindObject) -> Option<BookUse> {
    let book = beacon.spec.get("drift")?.get("book")?.as_str()?;
    Some(BookUse {
        name: BookName {
            namespace: beacon.namespace().unwrap_or_default().to_owned(),
            book: book.to_owned(),
            text: None,
        },
        inputs: serde_json::Map::new(),
        selector: None,
        nodes: Vec::new(),
        is_check: true,
    })
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
        let group = |name: &str, selector: &str| {
            object("NodeGroup", name, None, json!({"selector": selector}))
        };
        let grant = json!({"groups": ["shop"], "namespaces": ["shop"]});
        let grants = Grants::of(
            vec![group("web", "role=web"), group("shop", "role in (web,db)")],
            vec![object("NodeGrant", "shop", None, grant)],
        );
        let view = BeaconView::of(vec![beacon], grants);
        let nodes = nodes.iter().filter(|node| !view.of_node(node).is_empty());
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
        assert!(watched(&json!({"selector": "role in ("})).is_empty());
    }
}
