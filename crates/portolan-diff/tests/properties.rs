//! What holds for every pair of trees.

use portolan_diff::{Difference, Field, compare};
use portolan_object::canonical_json;
use portolan_yaml::{List, Node, Value};
use proptest::prelude::*;

fn leaf() -> impl Strategy<Value = Node> {
    prop_oneof![
        "[a-c]{0,2}".prop_map(Node::string),
        (0i64..4).prop_map(Node::int),
        any::<bool>().prop_map(Node::bool),
        Just(Node::null()),
    ]
}

fn map_of(node: impl Strategy<Value = Node>) -> impl Strategy<Value = Node> {
    prop::collection::btree_map("[a-d]", node, 0..4).prop_map(|entries| {
        let mut node = Node::map();
        for (key, value) in entries {
            node.as_map_mut().expect("a map").insert(key, value);
        }
        node
    })
}

fn list_of(node: impl Strategy<Value = Node>) -> impl Strategy<Value = Node> {
    prop::collection::vec(node, 0..4)
        .prop_map(|items| Node::new(Value::List(List::from_items(items))))
}

/// Trees of maps only.
fn plain() -> impl Strategy<Value = Node> {
    map_of(leaf().prop_recursive(4, 24, 4, map_of))
}

/// Trees of anything, with lists that have names.
fn any_tree() -> impl Strategy<Value = Node> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let named = ("[a-c]", inner.clone()).prop_map(|(name, value)| {
            let mut node = Node::map();
            let map = node.as_map_mut().expect("a map");
            map.insert("name", Node::string(name));
            map.insert("value", value);
            node
        });
        prop_oneof![map_of(inner.clone()), list_of(inner), list_of(named)]
    })
}

/// Puts a field of the new side into the old tree.
fn apply(tree: &mut Node, field: &Field) {
    let keys: Vec<_> = field.path.segments().iter().collect();
    let Some((last, above)) = keys.split_last() else {
        *tree = field.to().cloned().expect("the root was replaced");
        return;
    };
    let mut place = tree;
    for segment in above {
        let key = segment.as_key().expect("there are no lists");
        place = place.get_mut(key).expect("the path is there");
    }
    let key = last.as_key().expect("there are no lists");
    let map = place.as_map_mut().expect("a map");
    match &field.difference {
        Difference::Removed(_) => {
            map.remove(key);
        }
        _ => map.insert(key, field.to().cloned().expect("a value")),
    }
}

proptest! {
    #[test]
    fn a_tree_does_not_differ_from_itself(tree in any_tree()) {
        prop_assert_eq!(compare(&tree, &tree), []);
    }

    #[test]
    fn trees_differ_exactly_when_their_json_does(old in any_tree(), new in any_tree()) {
        let same = canonical_json(&old).unwrap() == canonical_json(&new).unwrap();
        prop_assert_eq!(compare(&old, &new).is_empty(), same);
    }

    #[test]
    fn the_fields_lead_from_one_tree_to_the_other(old in plain(), new in plain()) {
        let mut tree = old.clone();
        for field in compare(&old, &new) {
            apply(&mut tree, &field);
        }
        prop_assert_eq!(canonical_json(&tree).unwrap(), canonical_json(&new).unwrap());
    }
}
