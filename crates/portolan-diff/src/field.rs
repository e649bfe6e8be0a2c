//! One field that differs, and how two trees are compared field by field.
//!
//! Maps are compared by key in any order. Lists are compared by their merge key if they have one, otherwise by the
//! shortest edit script. What only one side has is one field, however large.

use std::collections::HashMap;

use portolan_object::{FieldPath, FieldSegment};
use portolan_yaml::{List, Map, Node, Text, Value, to_json};

use crate::list_key::{self, Keyed};
use crate::sequence::{Run, align};

/// How deep trees are compared; what differs further down is one field.
const MAX_DEPTH: usize = 100;

/// A field that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Where it stands.
    pub path: FieldPath,
    /// How it differs.
    pub difference: Difference,
    /// Whether the change replaces the pods of the workload it stands in.
    pub restarts: bool,
    /// The generated ConfigMap or Secret whose new name it follows: such a field is no news of its own.
    pub follows: Option<Text>,
}

/// How a field differs.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// Only the new side has it.
    Added(Shown),
    /// Only the old side had it.
    Removed(Shown),
    /// Both have it with another value, old and new.
    Changed(Shown, Shown),
    /// A list whose items are the same in another order, old and new.
    Reordered(Vec<Text>, Vec<Text>),
}

/// A value as it may be shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// The value; parts that came from a Secret are hidden in it.
    Value(Node),
    /// It is a secret: only that it is there may be said.
    Hidden,
}

impl Field {
    fn new(path: &FieldPath, difference: Difference) -> Self {
        Self {
            path: path.clone(),
            difference,
            restarts: false,
            follows: None,
        }
    }

    /// The old value, if it may be shown.
    pub fn from(&self) -> Option<&Node> {
        match &self.difference {
            Difference::Removed(old) | Difference::Changed(old, _) => old.node(),
            Difference::Added(_) | Difference::Reordered(..) => None,
        }
    }

    /// The new value, if it may be shown.
    pub fn to(&self) -> Option<&Node> {
        match &self.difference {
            Difference::Added(new) | Difference::Changed(_, new) => new.node(),
            Difference::Removed(_) | Difference::Reordered(..) => None,
        }
    }
}

impl Shown {
    /// The value, if it may be shown.
    pub fn node(&self) -> Option<&Node> {
        match self {
            Self::Value(node) => Some(node),
            Self::Hidden => None,
        }
    }
}

/// The fields in which two trees differ; none exactly when both mean the same.
pub fn compare(old: &Node, new: &Node) -> Vec<Field> {
    let mut fields = Vec::new();
    compare_at(&FieldPath::root(), old, new, MAX_DEPTH, &mut fields);
    fields
}

fn compare_at(path: &FieldPath, old: &Node, new: &Node, depth: usize, fields: &mut Vec<Field>) {
    if old == new {
        return;
    }
    match (&old.value, &new.value) {
        (Value::Map(a), Value::Map(b)) if depth > 0 => compare_maps(path, a, b, depth - 1, fields),
        (Value::List(a), Value::List(b)) if depth > 0 => {
            compare_lists(path, a, b, depth - 1, fields);
        }
        _ if same_meaning(old, new) => {}
        _ => fields.push(changed(path, old, new)),
    }
}

fn compare_maps(path: &FieldPath, old: &Map, new: &Map, depth: usize, fields: &mut Vec<Field>) {
    let in_old: HashMap<&str, &Node> = by_key(old);
    let in_new: HashMap<&str, &Node> = by_key(new);
    for entry in old {
        let key = entry.key.as_str();
        let below = || path.then(FieldSegment::Key(entry.key.scalar.text.clone()));
        match in_new.get(key) {
            None => fields.push(removed(&below(), &entry.value)),
            Some(other) if **other == entry.value => {}
            Some(other) => compare_at(&below(), &entry.value, other, depth, fields),
        }
    }
    for entry in new
        .iter()
        .filter(|entry| !in_old.contains_key(entry.key.as_str()))
    {
        let below = path.then(FieldSegment::Key(entry.key.scalar.text.clone()));
        fields.push(added(&below, &entry.value));
    }
}

fn by_key(map: &Map) -> HashMap<&str, &Node> {
    map.iter()
        .map(|entry| (entry.key.as_str(), &entry.value))
        .collect()
}

fn compare_lists(path: &FieldPath, old: &List, new: &List, depth: usize, fields: &mut Vec<Field>) {
    match list_key::keyed(path.last_key(), old, new) {
        Some(keys) => compare_by_key(path, (old, new), &keys, depth, fields),
        None => compare_by_place(path, old, new, depth, fields),
    }
}

fn compare_by_key(
    path: &FieldPath,
    (old, new): (&List, &List),
    keys: &Keyed,
    depth: usize,
    fields: &mut Vec<Field>,
) {
    let new_items: HashMap<&Text, &Node> = keys.new.iter().zip(new.iter()).collect();
    let old_items: HashMap<&Text, &Node> = keys.old.iter().zip(old.iter()).collect();
    for (key, item) in keys.old.iter().zip(old.iter()) {
        let below = path.then(FieldSegment::Item(key.clone()));
        match new_items.get(key) {
            Some(other) => compare_at(&below, item, other, depth, fields),
            None => fields.push(removed(&below, item)),
        }
    }
    for (key, item) in keys.new.iter().zip(new.iter()) {
        if !old_items.contains_key(key) {
            fields.push(added(&path.then(FieldSegment::Item(key.clone())), item));
        }
    }
    let kept = |keys: &[Text], others: &HashMap<&Text, &Node>| -> Vec<Text> {
        keys.iter()
            .filter(|key| others.contains_key(key))
            .cloned()
            .collect()
    };
    let (before, after) = (kept(&keys.old, &new_items), kept(&keys.new, &old_items));
    if before != after {
        fields.push(Field::new(path, Difference::Reordered(before, after)));
    }
}

fn compare_by_place(
    path: &FieldPath,
    old: &List,
    new: &List,
    depth: usize,
    fields: &mut Vec<Field>,
) {
    let old: Vec<&Node> = old.iter().collect();
    let new: Vec<&Node> = new.iter().collect();
    let at = |place: usize| path.then(FieldSegment::Index(place));
    for run in align(&old, &new) {
        let Run::Replaced { old: a, new: b } = run else {
            continue;
        };
        let both = a.len().min(b.len());
        for (x, y) in a.clone().zip(b.clone()) {
            compare_at(&at(x), old[x], new[y], depth, fields);
        }
        fields.extend(a.skip(both).map(|x| removed(&at(x), old[x])));
        fields.extend(b.skip(both).map(|y| added(&at(y), new[y])));
    }
}

/// Whether Kubernetes would see the same value: `0x10` is 16, and `1.0` is 1.
fn same_meaning(old: &Node, new: &Node) -> bool {
    matches!((to_json(old), to_json(new)), (Ok(a), Ok(b)) if a == b)
}

fn added(path: &FieldPath, node: &Node) -> Field {
    Field::new(path, Difference::Added(Shown::Value(node.clone())))
}

fn removed(path: &FieldPath, node: &Node) -> Field {
    Field::new(path, Difference::Removed(Shown::Value(node.clone())))
}

fn changed(path: &FieldPath, old: &Node, new: &Node) -> Field {
    let difference = Difference::Changed(Shown::Value(old.clone()), Shown::Value(new.clone()));
    Field::new(path, difference)
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    fn node(text: &str) -> Node {
        parse_one(text, Dialect::Kustomize).expect("valid YAML")
    }

    fn paths(old: &str, new: &str) -> Vec<String> {
        let fields = compare(&node(old), &node(new));
        fields
            .iter()
            .map(|field| field.path.dotted().to_string())
            .collect()
    }

    #[test]
    fn another_order_of_a_map_is_no_difference() {
        assert_eq!(
            paths("{a: 1, b: {c: 2, d: 3}}", "{b: {d: 3, c: 2}, a: 1}"),
            [""; 0]
        );
    }

    #[test]
    fn another_spelling_of_a_number_is_no_difference_but_another_type_is() {
        assert_eq!(paths("{a: 0x10, b: 1.0}", "{a: 16, b: 1}"), [""; 0]);
        assert_eq!(paths("{a: 16}", "{a: '16'}"), ["a"]);
    }

    #[test]
    fn an_item_put_before_others_is_one_addition() {
        let old = "containers: [{name: web, image: a}, {name: log, image: b}]";
        let new =
            "containers: [{name: proxy, image: p}, {name: web, image: a2}, {name: log, image: b}]";
        assert_eq!(
            paths(old, new),
            ["containers[web].image", "containers[proxy]"]
        );
    }

    #[test]
    fn ports_are_told_apart_by_number_and_protocol() {
        let old = "ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]";
        let new = "ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP, name: dns}]";
        assert_eq!(paths(old, new), ["ports[53/TCP].name"]);
    }

    #[test]
    fn another_order_of_containers_is_told_as_such() {
        let fields = compare(
            &node("[{name: a}, {name: b}]"),
            &node("[{name: b}, {name: a}]"),
        );
        assert!(
            matches!(fields.as_slice(), [field] if matches!(field.difference, Difference::Reordered(..)))
        );
    }

    #[test]
    fn plain_lists_show_the_items_that_came_and_went() {
        assert_eq!(
            paths("args: [a, b, c]", "args: [a, c, d]"),
            ["args[1]", "args[2]"]
        );
        assert_eq!(
            paths("rules: [{verbs: [get]}]", "rules: [{verbs: [get, list]}]"),
            ["rules[0].verbs[1]"]
        );
    }

    #[test]
    fn trees_deeper_than_the_limit_are_one_field() {
        let deep = |value: &str| {
            let depth = MAX_DEPTH + 50;
            node(&format!(
                "{}{value}{}",
                "{a: ".repeat(depth),
                "}".repeat(depth)
            ))
        };
        let fields = compare(&deep("1"), &deep("2"));
        assert_eq!(fields.len(), 1);
        assert_eq!(fields[0].path.segments().len(), MAX_DEPTH);
    }
}
